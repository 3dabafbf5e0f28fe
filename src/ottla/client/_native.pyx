# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=True
# cython: initializedcheck=False, embedsignature=False
"""Calls of the system that never wait, made without giving the interpreter away meanwhile (see `prompt_io`), and one
that waits for them, without it."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.math cimport ceil

cdef extern from *:
    """
    #include <errno.h>
    #include <sys/socket.h>
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    #ifdef __linux__
    #include <sys/epoll.h>
    #else
    struct epoll_event { unsigned int events; union { int fd; } data; };
    static int epoll_wait(int epoll, struct epoll_event *events, int most, int wait_ms) { errno = ENOSYS; return -1; }
    #endif
    """
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    ctypedef union event_data:
        int fd
    struct epoll_event:
        unsigned int events
        event_data data
    Py_ssize_t c_send "send" (int descriptor, const void *data, size_t size, int flags)
    Py_ssize_t c_recv "recv" (int descriptor, void *data, size_t size, int flags)
    int epoll_wait(int epoll, epoll_event *events, int most, int wait_ms) nogil

cdef enum:
    # What takes longer to copy than others should wait goes the usual way.
    MOST_SENT_BYTES = 16 * 1024
    MOST_RECEIVED_BYTES = 64 * 1024
    TOO_LARGE = -2
    MOST_EVENTS = 64
    MOST_WAIT_MS = 86_400_000


cdef Py_ssize_t moved(int descriptor, memory, bint is_sent) except -1:
    """How many bytes were sent of `memory`, or received into it; TOO_LARGE, and none were, where it has too many."""
    cdef Py_buffer view
    cdef Py_ssize_t count = TOO_LARGE
    PyObject_GetBuffer(memory, &view, PyBUF_SIMPLE if is_sent else PyBUF_WRITABLE)
    if is_sent and view.len <= MOST_SENT_BYTES:
        count = c_send(descriptor, view.buf, <size_t>view.len, MSG_DONTWAIT | MSG_NOSIGNAL)
    elif not is_sent and view.len <= MOST_RECEIVED_BYTES:
        count = c_recv(descriptor, view.buf, <size_t>view.len, MSG_DONTWAIT)
    PyBuffer_Release(&view)
    if count == -1:
        PyErr_SetFromErrno(OSError)
    return count


cdef class PromptSocket:
    """A socket that does not block, with the methods of `socket.socket` that a connection needs."""

    cdef object _socket
    cdef int _descriptor

    def __cinit__(self, sock):
        self._socket = sock
        self._descriptor = sock.fileno()

    def send(self, data):
        cdef Py_ssize_t sent = moved(self._descriptor, data, True)
        return self._socket.send(data) if sent == TOO_LARGE else sent

    def sendmsg(self, parts):
        return self._socket.sendmsg(parts)

    def recv_into(self, room):
        cdef Py_ssize_t received = moved(self._descriptor, room, False)
        return self._socket.recv_into(room) if received == TOO_LARGE else received

    def close(self):
        """Its number may be another socket's from now on."""
        self._descriptor = -1
        self._socket.close()


def ready_now(int epoll):
    """The descriptors that are ready, each with its events."""
    cdef epoll_event events[MOST_EVENTS]
    cdef int number
    cdef int count = epoll_wait(epoll, events, MOST_EVENTS, 0)
    if count < 0:
        PyErr_SetFromErrno(OSError)
    return [(events[number].data.fd, events[number].events) for number in range(count)]


def ready_within(int epoll, timeout):
    """The same, once there are some: none after `timeout` seconds, or when a signal came. Waits without the interpreter."""
    cdef epoll_event events[MOST_EVENTS]
    cdef int number, count, wait_ms = -1
    if timeout is not None:
        wait_ms = <int>min(ceil(max(<double>timeout, 0.0) * 1000), MOST_WAIT_MS)
    with nogil:
        count = epoll_wait(epoll, events, MOST_EVENTS, wait_ms)
    if count < 0:
        if errno != EINTR:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()
        return []
    return [(events[number].data.fd, events[number].events) for number in range(count)]
