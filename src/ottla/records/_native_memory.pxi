# Memory that is used again: for tables, and for batches on their way out.
#
# What comes fresh from the system is cleared and mapped page by page, and taken away from all processors when it is
# given back; that takes as long as filling it. So large pieces come from those that others were in, if nobody has them
# any more. The GIL guards what is kept, and there is never more than `_MOST_KEPT_BYTES` of it.

from cpython.buffer cimport PyBuffer_FillInfo

cdef extern from "_memory.h" nogil:
    int OTTLA_LARGE

    ctypedef struct ottla_block:
        uint8_t *data
        int64_t size
        int64_t capacity

    uint8_t *ottla_memory(uint8_t *data, int64_t before, int64_t after)
    int ottla_block_grow(ottla_block *block, int64_t capacity)
    int ottla_block_room(ottla_block *block, int64_t more)

cdef enum:
    _LEAST_KEPT_BYTES = 131072
    _MOST_KEPT_BYTES = 33554432
    _MOST_KEPT = 48

ctypedef struct Kept:
    uint8_t *data
    int64_t capacity

cdef Kept _kept[_MOST_KEPT]
cdef int _kept_count = 0
cdef int64_t _kept_bytes = 0


cdef void _forget(int index) noexcept:
    """The memory is no longer kept; those behind it move up, so that the first one is the oldest."""
    global _kept_count, _kept_bytes
    _kept_count -= 1
    _kept_bytes -= _kept[index].capacity
    memmove(&_kept[index], &_kept[index + 1], (_kept_count - index) * sizeof(Kept))


cdef void _let_go(uint8_t *data, int64_t capacity) noexcept:
    """Keep memory that nobody has any more for the next table, or give it back. The oldest make room."""
    global _kept_count, _kept_bytes
    if capacity < _LEAST_KEPT_BYTES or capacity > _MOST_KEPT_BYTES:
        ottla_memory(data, capacity, 0)
        return
    while _kept_count == _MOST_KEPT or _kept_bytes + capacity > _MOST_KEPT_BYTES:
        ottla_memory(_kept[0].data, _kept[0].capacity, 0)
        _forget(0)
    _kept[_kept_count].data = data
    _kept[_kept_count].capacity = capacity
    _kept_count += 1
    _kept_bytes += capacity


cdef int _reserve(ottla_block *block, int64_t total) except -1:
    """Room for so many bytes in all: of an empty block, the smallest kept one that has it and is not much larger."""
    cdef int64_t step = _LEAST_KEPT_BYTES // 16
    cdef int best = -1
    cdef int index
    if total <= block.capacity:
        return 0
    if block.data == NULL and total >= _LEAST_KEPT_BYTES:
        for index in range(_kept_count):
            if total <= _kept[index].capacity <= total + total // 4:
                if best < 0 or _kept[index].capacity < _kept[best].capacity:
                    best = index
        if best >= 0:
            block.data = _kept[best].data
            block.capacity = _kept[best].capacity
            _forget(best)
            return 0
        # Tables differ a little in size: rounded up by an eighth at most, the memory of one fits the next.
        while step * 16 <= total:
            step *= 2
        total = (total + step - 1) // step * step
    if ottla_block_grow(block, max(total, 2 * block.capacity)):
        raise MemoryError()
    return 0


cdef class Memory:
    """Readable as a buffer, let go when the last reader lets go."""

    cdef uint8_t *_data
    cdef Py_ssize_t _size
    cdef int64_t _capacity

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self._data, self._size, 1, flags)

    def __len__(self):
        return self._size

    def __dealloc__(self):
        _let_go(self._data, self._capacity)


cdef Memory _hand_over(ottla_block *block):
    """The memory as an object of its own; the block is empty afterwards.

    A user may have it for long: no more than half of it is unused. What is unused was mostly never touched.
    """
    cdef Memory owner = Memory.__new__(Memory)
    if block.capacity < _LEAST_KEPT_BYTES or block.capacity > 2 * block.size:
        if ottla_block_grow(block, max(block.size, 1)):
            raise MemoryError()
    owner._data = block.data
    owner._size = block.size
    owner._capacity = block.capacity
    block.data = NULL
    block.size = block.capacity = 0
    return owner
