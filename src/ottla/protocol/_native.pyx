# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=True
# cython: initializedcheck=False, embedsignature=False
"""The compiled twin of `decoder` and `encoder`: the same declarations, bytes and refusals, without a text in between.

A `Codec` is made for one message in one version: the fields of its structs in the order of the wire, each with what to
do. To decode or encode is to walk them. Fields are read and written where the object keeps them, past the descriptors
of their slots, so only objects of the declared classes can be encoded.

The rules are those of the twin: no length is trusted before it was held against the bytes that are left, what is empty
takes no memory, records are views of the buffer that came, and stand by themselves in what is encoded.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_Check
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem, PyDict_Size
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_CheckExact, PyLong_FromLong, PyLong_FromLongLong
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject, PyObject_TypeCheck, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_Check, PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

import struct

from ottla.protocol import wire
from ottla.protocol.decoder import smallest_element
from ottla.protocol.schema import StructType

cdef extern from "Python.h":
    ctypedef int (*initproc)(PyObject *one, PyObject *given, PyObject *named) except -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t items)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1

cdef extern from *:
    """
    #include <structmember.h>
    static Py_ssize_t ottla_slot_offset(PyObject *descriptor)
    {
        if (Py_TYPE(descriptor) != &PyMemberDescr_Type) {
            PyErr_SetString(PyExc_TypeError, "a field of a message is not a slot");
            return -1;
        }
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    #define ottla_set_constructor(type, constructor) (((PyTypeObject *)(type))->tp_init = (constructor))
    #define ottla_slot(object, offset) ((PyObject **)((char *)(object) + (offset)))
    """
    Py_ssize_t ottla_slot_offset(object descriptor) except -1
    void ottla_set_constructor(object type, initproc constructor)
    PyObject **ottla_slot(PyObject *object, Py_ssize_t offset) nogil

cdef enum:
    INT8
    INT16
    UINT16
    INT32
    INT64
    FLOAT64
    BOOLEAN
    UUID
    STRING
    BYTES
    RECORDS
    STRUCT

cdef dict _KINDS = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "int64": INT64,
    "float64": FLOAT64,
    "bool": BOOLEAN,
    "uuid": UUID,
    "string": STRING,
    "bytes": BYTES,
    "records": RECORDS,
}
cdef Py_ssize_t[8] _WIDTHS = [1, 2, 2, 4, 8, 8, 1, 16]

cdef object _NO_ITEMS = wire.NO_ITEMS
cdef object _NO_RECORDS = wire.NO_RECORDS
cdef object _StructError = struct.error
cdef int _LONGEST_STRING = wire.MAX_STRING_BYTES

cdef struct Reader:
    const uint8_t *data
    Py_ssize_t position
    Py_ssize_t end
    bint flexible

cdef struct Writer:
    uint8_t *data
    Py_ssize_t size
    Py_ssize_t room
    bint has_piece
    bint flexible


@cython.final
cdef class _Field:
    """One field in one version; of an array, what its elements are, and the fewest bytes that one is counted with."""

    cdef str name
    cdef int kind
    cdef Py_ssize_t offset
    cdef bint is_array
    cdef bint is_nullable
    cdef bint is_ever_nullable
    cdef bint is_fresh
    cdef int64_t tag
    cdef object default
    cdef Layout layout
    cdef Py_ssize_t smallest


@cython.final
cdef class Layout:
    """The fields of a struct in one version. `refused` are not on the wire, and may hold nothing but their default."""

    cdef object cls
    cdef int version
    cdef bint flexible
    cdef bint has_records
    cdef tuple fields
    cdef tuple tagged
    cdef tuple unread
    cdef tuple refused

    def __init__(self, cls, int version, bint flexible):
        cdef list fields = [], tagged = [], unread = [], refused = []
        cdef _Field field
        self.cls = cls
        self.version = version
        self.flexible = flexible
        for one in cls.FIELDS:
            field = _made(one, cls, version, flexible)
            has_records = field.kind == RECORDS or (field.kind == STRUCT and field.layout.has_records)
            if has_records and one.tag is not None:
                raise TypeError(f"{one.name}: records in a tagged field cannot stand by themselves")
            self.has_records |= has_records
            if version not in one.versions:
                unread.append(field)
                if not one.ignorable:
                    refused.append(field)
            elif one.tag is None:
                fields.append(field)
            else:
                unread.append(field)
                tagged.append(field)
        self.fields = tuple(fields)
        self.tagged = tuple(sorted(tagged, key=_tag_of))
        self.unread = tuple(unread)
        self.refused = tuple(refused)


def _tag_of(_Field field not None):
    return field.tag


cdef _Field _made(one, cls, int version, bint flexible):
    cdef _Field field = _Field.__new__(_Field)
    field.name = one.name
    field.offset = ottla_slot_offset(cls.__dict__[one.name])
    field.is_array = one.is_array
    field.is_nullable = one.nullable_in(version)
    field.is_ever_nullable = one.nullable is not None
    field.is_fresh = one.has_fresh_default
    field.tag = -1 if one.tag is None else one.tag
    field.default = one.default
    if isinstance(one.type, StructType):
        field.kind = STRUCT
        field.layout = Layout(one.type, version, flexible)
    else:
        field.kind = _KINDS[one.type.name]
    field.smallest = max(smallest_element(one.type, version, flexible), 1) if one.is_array else 0
    return field


@cython.final
cdef class Codec:
    """One message in one version."""

    cdef Layout _layout

    def __init__(self, cls, int version, bint flexible):
        self._layout = Layout(cls, version, flexible)

    def decode(self, buffer, Py_ssize_t position, bint exact):
        """The message that starts there; IndexError where the buffer ends before it."""
        cdef Reader reader
        cdef Py_buffer view
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            reader.data = <const uint8_t *>view.buf
            reader.position = position
            reader.end = view.len
            reader.flexible = self._layout.flexible
            if position < 0:
                raise IndexError(f"there is nothing at byte {position}")
            # One view, of which all records are slices: they have one object in common, which holds the buffer.
            whole = memoryview(buffer) if self._layout.has_records else None
            message = _read_struct(&reader, self._layout, whole)
            if exact and reader.position != reader.end:
                raise wire.trailing(reader.position, reader.end)
            return message
        finally:
            PyBuffer_Release(&view)

    def encode(self, message, head):
        """The pieces of the message behind `head`: bytes, and between them the records as they were given."""
        cdef Writer writer
        writer.data = NULL
        writer.size = writer.room = 0
        writer.has_piece = True
        writer.flexible = self._layout.flexible
        cdef list parts = []
        try:
            if head:
                _write_bytes(&writer, head)
            _write_struct(&writer, self._layout, message, parts)
            if writer.has_piece:
                parts.append(PyBytes_FromStringAndSize(<const char *>writer.data, writer.size))
            return parts
        finally:
            free(writer.data)


@cython.final
cdef class _Argument:
    """One argument of a constructor: a field, and what it is when it is left out."""

    cdef str name
    cdef Py_ssize_t offset
    cdef bint is_list
    cdef object made_by
    cdef object default


cdef dict _constructors = {}


def equip(cls):
    """Have objects of that class filled in here, `cls(name=value)`, with the defaults of what is not named; and what
    does so for an object that is there already."""
    cdef list arguments = []
    cdef _Argument argument
    for one in cls.FIELDS:
        argument = _Argument.__new__(_Argument)
        argument.name = one.name
        argument.offset = ottla_slot_offset(cls.__dict__[one.name])
        argument.default = one.default
        argument.is_list = one.has_fresh_default and one.is_array
        argument.made_by = one.type if one.has_fresh_default and not one.is_array else None
        arguments.append(argument)
    _constructors[cls] = tuple(arguments)
    ottla_set_constructor(cls, _construct)
    return fill


def fill(target, /, **named):
    _construct(<PyObject *>target, <PyObject *>(), <PyObject *>named)


cdef int _construct(PyObject *one, PyObject *given, PyObject *named) except -1:
    cdef object target = <object>one
    cdef tuple arguments = _constructors.get(type(target))
    cdef PyObject *found
    cdef _Argument argument
    cdef Py_ssize_t taken = 0
    if arguments is None:
        # Of a class that was derived from an equipped one.
        equip(type(target))
        arguments = _constructors[type(target)]
    if PyTuple_GET_SIZE(<object>given):
        raise TypeError(f"{type(target).__name__} takes no positional arguments: its fields have to be named")
    for argument in arguments:
        found = NULL if named == NULL else PyDict_GetItem(<object>named, argument.name)
        if found != NULL:
            taken += 1
            _put(target, argument.offset, <object>found)
        elif argument.is_list:
            _put(target, argument.offset, [])
        elif argument.made_by is not None:
            _put(target, argument.offset, argument.made_by())
        else:
            _put(target, argument.offset, argument.default)
    if named != NULL and taken != PyDict_Size(<object>named):
        unknown = set(<object>named)
        for argument in arguments:
            unknown.discard(argument.name)
        raise TypeError(f"{type(target).__name__} has no field {', '.join(sorted(unknown))}")
    return 0


include "_native_decoder.pxi"
include "_native_encoder.pxi"
