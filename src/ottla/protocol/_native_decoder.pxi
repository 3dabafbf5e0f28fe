# Reading: `position` is the next unread byte, `end` the one behind the last.

cdef const uint8_t *_bytes_of(Reader *reader, Py_ssize_t count) except NULL:
    """Where the next bytes are, which are read by that."""
    cdef Py_ssize_t position = reader.position
    if count > reader.end - position:
        raise IndexError(f"{count} bytes are needed at byte {position}, {max(reader.end - position, 0)} are left")
    reader.position = position + count
    return reader.data + position


cdef inline uint16_t _uint16(const uint8_t *at) noexcept nogil:
    return <uint16_t>((at[0] << 8) | at[1])


cdef inline uint32_t _uint32(const uint8_t *at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline uint64_t _uint64(const uint8_t *at) noexcept nogil:
    return (<uint64_t>_uint32(at) << 32) | _uint32(at + 4)


cdef inline object _double(const uint8_t *at):
    cdef uint64_t bits = _uint64(at)
    cdef double value
    memcpy(&value, &bits, 8)
    return value


cdef int64_t _varint(Reader *reader) except -1:
    """An unsigned varint of at most 32 bits."""
    cdef uint64_t value = 0
    cdef uint8_t byte
    cdef int shift
    for shift in range(0, 35, 7):
        byte = _bytes_of(reader, 1)[0]
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFFU:
                break
            return <int64_t>value
    raise wire.MalformedMessage(f"a varint that ends at byte {reader.position} does not fit into 32 bits")


cdef int64_t _length(Reader *reader, bint is_short) except -2:
    """A length or a count; -1 for null."""
    cdef int32_t size
    if reader.flexible:
        return _varint(reader) - 1
    if is_short:
        size = <int16_t>_uint16(_bytes_of(reader, 2))
    else:
        size = <int32_t>_uint32(_bytes_of(reader, 4))
    return size if size >= 0 else -1


cdef object _number(int kind, const uint8_t *at):
    if kind == INT32:
        return PyLong_FromLong(<int32_t>_uint32(at))
    if kind == INT64:
        return PyLong_FromLongLong(<int64_t>_uint64(at))
    if kind == INT16:
        return PyLong_FromLong(<int16_t>_uint16(at))
    if kind == INT8:
        return PyLong_FromLong(<int8_t>at[0])
    if kind == BOOLEAN:
        return at[0] != 0
    if kind == UUID:
        return PyBytes_FromStringAndSize(<const char *>at, 16)
    if kind == UINT16:
        return PyLong_FromLong(_uint16(at))
    return _double(at)


cdef object _read_sized(Reader *reader, _Field field, object whole, bint is_nullable):
    """A string, bytes or records, behind its length."""
    cdef int64_t size = _length(reader, field.kind == STRING)
    cdef const uint8_t *at
    cdef Py_ssize_t position
    if size < 0:
        if is_nullable:
            return None
        raise wire.null_refused(field.name)
    if field.kind == STRING and size > _LONGEST_STRING:
        raise wire.string_too_long(field.name, size)
    if size > reader.end - reader.position:
        raise wire.overrun(field.name, size, reader.end - reader.position)
    position = reader.position
    at = reader.data + position
    reader.position = position + <Py_ssize_t>size
    if field.kind == STRING:
        return PyUnicode_DecodeUTF8(<const char *>at, <Py_ssize_t>size, "strict")
    if field.kind == BYTES:
        return PyBytes_FromStringAndSize(<const char *>at, <Py_ssize_t>size)
    if size == 0:
        return _NO_RECORDS
    return whole[position : position + <Py_ssize_t>size]


cdef object _read_one(Reader *reader, _Field field, object whole, bint is_nullable):
    """A value that is no array, or an element of one."""
    cdef int8_t presence
    if field.kind < STRING:
        return _number(field.kind, _bytes_of(reader, _WIDTHS[field.kind]))
    if field.kind < STRUCT:
        return _read_sized(reader, field, whole, is_nullable)
    if is_nullable:
        presence = <int8_t>_bytes_of(reader, 1)[0]
        if presence < 0 or (presence == 0 and field.tag >= 0):
            return None
    return _read_struct(reader, field.layout, whole)


cdef object _read_array(Reader *reader, _Field field, object whole):
    cdef int64_t count = _length(reader, False)
    cdef Py_ssize_t left = reader.end - reader.position
    cdef Py_ssize_t index
    if count < 0:
        if field.is_nullable:
            return None
        raise wire.null_refused(field.name)
    if count > left // field.smallest:
        raise wire.too_many(field.name, count, left)
    if count == 0:
        return _NO_ITEMS
    # Of its final size from the start; what is not read yet is None, should anybody look.
    items = [None] * count
    for index in range(<Py_ssize_t>count):
        items[index] = _read_one(reader, field, whole, False)
    return items


cdef inline object _read_field(Reader *reader, _Field field, object whole):
    if field.is_array:
        return _read_array(reader, field, whole)
    return _read_one(reader, field, whole, field.is_nullable)


cdef inline void _put(object target, Py_ssize_t offset, object value):
    cdef PyObject **slot = ottla_slot(<PyObject *>target, offset)
    cdef PyObject *before = slot[0]
    Py_INCREF(value)
    slot[0] = <PyObject *>value
    Py_XDECREF(before)


cdef int _put_default(object target, _Field field) except -1:
    if not field.is_fresh:
        _put(target, field.offset, field.default)
    elif field.is_array:
        _put(target, field.offset, _NO_ITEMS)
    else:
        _put(target, field.offset, _fresh(field.layout))
    return 0


cdef object _fresh(Layout layout):
    """A struct with nothing but defaults."""
    cdef _Field field
    made = PyType_GenericAlloc(<PyTypeObject *>layout.cls, 0)
    for field in layout.fields:
        _put_default(made, field)
    for field in layout.unread:
        _put_default(made, field)
    return made


cdef object _read_struct(Reader *reader, Layout layout, object whole):
    cdef _Field field
    made = PyType_GenericAlloc(<PyTypeObject *>layout.cls, 0)
    for field in layout.unread:
        _put_default(made, field)
    for field in layout.fields:
        _put(made, field.offset, _read_field(reader, field, whole))
    if layout.flexible:
        _read_tags(reader, layout, made, whole)
    return made


cdef int _read_tags(Reader *reader, Layout layout, object made, object whole) except -1:
    """Tags should ascend, but Kafka takes them in any order, and of one that comes twice the last."""
    cdef int64_t count = _varint(reader)
    cdef int64_t tag, size
    cdef Py_ssize_t stop
    cdef _Field field, found
    while count > 0:
        count -= 1
        tag = _varint(reader)
        size = _varint(reader)
        if size > reader.end - reader.position:
            raise wire.overrun(f"tagged field {tag}", size, reader.end - reader.position)
        stop = reader.position + <Py_ssize_t>size
        found = None
        for field in layout.tagged:
            if field.tag == tag:
                found = field
                break
        if found is None:
            reader.position = stop
            continue
        _put(made, found.offset, _read_field(reader, found, whole))
        if reader.position != stop:
            raise wire.tag_size_differs(found.name, stop, reader.position)
    return 0
