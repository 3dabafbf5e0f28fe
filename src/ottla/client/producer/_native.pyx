# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=True
# cython: initializedcheck=False, embedsignature=False
"""The compiled twin of `_pure`: the way of a record from `send` into the open batch of its partition.

All of it is safe to call from any thread that holds the GIL. What must stay true for that: between the moment in which
`Appender` looks at a queue and the moment in which it has changed it, no Python code runs (no call, no object that
the garbage collector counts), so no other thread can come in between.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_DelItem, PyDict_GetItem, PyDict_SetItem
from cpython.list cimport PyList_Append, PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove
from libc.time cimport time_t

from ottla.client.producer import faults
from ottla.client.producer.arguments import number, stamp
from ottla.client.types import RecordMetadata

cdef extern from "pythread.h" nogil:
    ctypedef void *PyThread_type_lock
    ctypedef enum PyLockStatus:
        PY_LOCK_FAILURE
        PY_LOCK_ACQUIRED
        PY_LOCK_INTR
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock lock)
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int intr_flag)
    void PyThread_release_lock(PyThread_type_lock lock)
    unsigned long PyThread_get_thread_ident()

cdef extern from "time.h" nogil:
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int TIME_UTC
    int timespec_get(timespec *out, int base)

cdef extern from "_wire.h" nogil:
    uint8_t *ottla_put_varint(uint8_t *at, int64_t value)
    int ottla_varint_size(int64_t value)
    int ottla_subtract64(int64_t left, int64_t right, int64_t *difference)

cdef extern from *:
    """
    /* A tuple, or one of a subclass without fields of its own, made in one piece. */
    static PyObject *ottla_tuple_of_four(PyObject *type, PyObject *a, PyObject *b, PyObject *c, PyObject *d) {
        PyObject *made = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 4);
        if (made != NULL) {
            PyTuple_SET_ITEM(made, 0, Py_NewRef(a));
            PyTuple_SET_ITEM(made, 1, Py_NewRef(b));
            PyTuple_SET_ITEM(made, 2, Py_NewRef(c));
            PyTuple_SET_ITEM(made, 3, Py_NewRef(d));
        }
        return made;
    }
    """
    object ottla_tuple_of_four(object type, object a, object b, object c, object d)

cdef enum:
    HEADER = 61
    # A thread that was told to give way looks again after this long, whatever happens.
    GIVE_WAY_MICROSECONDS = 5000


include "../_await.pxi"
include "../../records/_native_memory.pxi"
include "_native_records.pxi"
include "_native_appender.pxi"
include "_native_table.pxi"
