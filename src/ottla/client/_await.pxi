# What `await` asks of an object that has its result already: one call, without a StopIteration around the result.

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
    ctypedef PySendResult (*sendfunc)(PyObject *one, PyObject *sent, PyObject **result) except PYGEN_ERROR

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030a0000
    #error "am_send came with Python 3.10"
    #endif
    #define ottla_answers_await(type, send) (((PyTypeObject *)(type))->tp_as_async->am_send = (send))
    """
    void ottla_answers_await(object type, sendfunc send)
