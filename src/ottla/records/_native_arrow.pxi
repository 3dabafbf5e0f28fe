# From records to Arrow buffers, without a Python object for a record and without the GIL.
#
# A payload bounds what its records can hold, so room for keys, values and rows is made once for each batch and the
# loop only copies. Memory that is reserved and not used is never touched, and is given back at the end.

from cpython.buffer cimport PyBuffer_FillInfo


cdef class ArrowBuffer:
    """Memory handed over to Arrow: readable as a buffer, freed when the last reader lets go."""

    cdef void *_data
    cdef Py_ssize_t _size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self._data, self._size, 1, flags)

    def __len__(self):
        return self._size

    def __dealloc__(self):
        free(self._data)


ctypedef struct Grown:
    uint8_t *data
    int64_t size
    int64_t capacity


cdef int _room(Grown *buffer, int64_t more) noexcept nogil:
    cdef int64_t capacity
    cdef uint8_t *data
    if buffer.size + more <= buffer.capacity:
        return OTTLA_OK
    capacity = max(buffer.capacity * 2, buffer.size + more, 64)
    data = <uint8_t *>realloc(buffer.data, capacity)
    if data == NULL:
        return OTTLA_MEMORY
    buffer.data = data
    buffer.capacity = capacity
    return OTTLA_OK


cdef ArrowBuffer _hand_over(Grown *buffer):
    """The memory as an object of its own, cut to size; the buffer is empty afterwards."""
    cdef ArrowBuffer owner = ArrowBuffer.__new__(ArrowBuffer)
    cdef void *cut = realloc(buffer.data, max(buffer.size, 1))
    if cut == NULL:
        raise MemoryError()
    owner._data = cut
    owner._size = buffer.size
    buffer.data = NULL
    buffer.size = buffer.capacity = 0
    return owner


ctypedef struct Binary:
    Grown data
    Grown offsets
    Grown validity
    int64_t rows
    int64_t nulls


cdef int _binary_room(Binary *column, int64_t rows, int64_t data_bytes) noexcept nogil:
    cdef int64_t bitmap_bytes = (column.rows + rows + 7) // 8 - column.validity.size
    if _room(&column.data, data_bytes) or _room(&column.offsets, (column.rows + rows + 1) * 4):
        return OTTLA_MEMORY
    if bitmap_bytes > 0:
        if _room(&column.validity, bitmap_bytes):
            return OTTLA_MEMORY
        memset(column.validity.data + column.validity.size, 0, bitmap_bytes)
        column.validity.size += bitmap_bytes
    return OTTLA_OK


cdef inline int _binary_put(Binary *column, const uint8_t *data, int32_t size) noexcept nogil:
    """Add a row, null for a negative size. Room was made before, and one offset is always ahead of the rows."""
    cdef int64_t row = column.rows
    if size >= 0:
        if column.data.size + size > INT32_MAX:
            return OTTLA_COLUMN_FULL
        memcpy(column.data.data + column.data.size, data, size)
        column.data.size += size
        column.validity.data[row >> 3] |= <uint8_t>(1 << (row & 7))
    else:
        column.nulls += 1
    column.rows = row + 1
    (<int32_t *>column.offsets.data)[row + 1] = <int32_t>column.data.size
    return OTTLA_OK


cdef object _binary_finish(Binary *column):
    cdef object validity = None
    column.offsets.size = (column.rows + 1) * 4
    column.validity.size = (column.rows + 7) // 8
    if column.nulls:
        validity = _hand_over(&column.validity)
    return BinaryColumn(validity, _hand_over(&column.offsets), _hand_over(&column.data), column.nulls)


cdef void _binary_free(Binary *column) noexcept:
    free(column.data.data)
    free(column.offsets.data)
    free(column.validity.data)


cdef class ArrowDecoder:
    """Collects records as Arrow buffers. After an exception the decoder is spent.

    Rows outside [first_offset, end_offset) are left out; timestamps are multiplied by `timestamp_factor`.
    """

    cdef Binary _key
    cdef Binary _value
    cdef Binary _header_name
    cdef Binary _header_value
    cdef Grown _offset
    cdef Grown _timestamp
    cdef Grown _timestamp_type
    cdef Grown _header_offsets
    cdef int64_t _first_offset
    cdef int64_t _end_offset
    cdef int64_t _factor
    cdef bint _with_headers

    def __cinit__(self, int64_t first_offset, int64_t end_offset, int64_t timestamp_factor, bint with_headers):
        self._first_offset = first_offset
        self._end_offset = end_offset
        self._factor = timestamp_factor
        self._with_headers = with_headers
        if (_binary_room(&self._key, 0, 0) or _binary_room(&self._value, 0, 0) or _room(&self._header_offsets, 4)
                or _binary_room(&self._header_name, 0, 0) or _binary_room(&self._header_value, 0, 0)):
            raise MemoryError()
        (<int32_t *>self._key.offsets.data)[0] = 0
        (<int32_t *>self._value.offsets.data)[0] = 0
        (<int32_t *>self._header_name.offsets.data)[0] = 0
        (<int32_t *>self._header_value.offsets.data)[0] = 0
        (<int32_t *>self._header_offsets.data)[0] = 0

    def __dealloc__(self):
        _binary_free(&self._key)
        _binary_free(&self._value)
        _binary_free(&self._header_name)
        _binary_free(&self._header_value)
        free(self._offset.data)
        free(self._timestamp.data)
        free(self._timestamp_type.data)
        free(self._header_offsets.data)

    cdef int _make_room(self, int64_t rows, int64_t payload_bytes) noexcept nogil:
        if _binary_room(&self._key, rows, payload_bytes) or _binary_room(&self._value, rows, payload_bytes):
            return OTTLA_MEMORY
        if _room(&self._offset, rows * 8) or _room(&self._timestamp, rows * 8):
            return OTTLA_MEMORY
        if _room(&self._timestamp_type, rows * 4) or _room(&self._header_offsets, (rows + 1) * 4):
            return OTTLA_MEMORY
        return OTTLA_OK

    cdef int _put_replaced_name(self, ottla_header *header, int64_t bytes_to_come) noexcept with gil:
        """A name that is not UTF-8 gets replacement characters, as it does when it becomes a `str`.

        They may take more room than was made for the name, so what is still to come gets its room again.
        """
        try:
            name = PyUnicode_DecodeUTF8(<const char *>header.key, header.key_size, "replace").encode()
        except MemoryError:
            return OTTLA_MEMORY
        if _binary_room(&self._header_name, 1, len(name) + bytes_to_come):
            return OTTLA_MEMORY
        return _binary_put(&self._header_name, <const uint8_t *>PyBytes_AS_STRING(name), <int32_t>len(name))

    cdef inline int _put_name(self, ottla_header *header, int64_t bytes_to_come) noexcept nogil:
        if ottla_is_utf8(header.key, header.key_size):
            return _binary_put(&self._header_name, header.key, header.key_size)
        return self._put_replaced_name(header, bytes_to_come)

    cdef int _put_headers(self, ottla_walk *walk) noexcept nogil:
        cdef const uint8_t *at = walk.record.headers
        cdef const uint8_t *end = walk.at
        cdef int32_t count = walk.record.header_count
        cdef ottla_header header
        cdef int state
        if self._header_name.rows + count > INT32_MAX:
            return OTTLA_COLUMN_FULL
        if _binary_room(&self._header_name, count, end - at) or _binary_room(&self._header_value, count, end - at):
            return OTTLA_MEMORY
        for _ in range(count):
            state = ottla_next_header(&at, end, &header)
            if state == OTTLA_OK:
                state = self._put_name(&header, end - at)
            if state == OTTLA_OK:
                state = _binary_put(&self._header_value, header.value, header.value_size)
            if state:
                return state
        return OTTLA_OK

    cdef int _put(self, ottla_walk *walk, int32_t timestamp_type) noexcept nogil:
        cdef int64_t timestamp = walk.timestamp
        cdef int64_t row = self._key.rows
        cdef int state
        if walk.offset < self._first_offset or walk.offset >= self._end_offset:
            return OTTLA_OK
        if self._factor != 1:
            if timestamp > INT64_MAX // self._factor or timestamp < -(INT64_MAX // self._factor):
                return OTTLA_TIMESTAMP_RANGE
            timestamp *= self._factor
        state = _binary_put(&self._key, walk.record.key, walk.record.key_size)
        if state:
            return state
        state = _binary_put(&self._value, walk.record.value, walk.record.value_size)
        if state:
            return state
        (<int64_t *>self._offset.data)[row] = walk.offset
        (<int64_t *>self._timestamp.data)[row] = timestamp
        (<int32_t *>self._timestamp_type.data)[row] = timestamp_type
        self._offset.size += 8
        self._timestamp.size += 8
        self._timestamp_type.size += 4
        self._header_offsets.size += 4
        if self._with_headers and walk.record.header_count:
            state = self._put_headers(walk)
            if state:
                return state
        (<int32_t *>self._header_offsets.data)[row + 1] = <int32_t>self._header_name.rows
        return OTTLA_OK

    def add(self, payload, BatchHeader header not None):
        """The records of one decompressed payload, as further rows."""
        cdef Py_buffer view
        cdef ottla_walk walk
        cdef int state
        cdef int32_t timestamp_type = 1 if header.attributes & LOG_APPEND_TIME_BIT else 0
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            _begin(&walk, &view, header)
            with nogil:
                state = ottla_walk_next(&walk)
                if state == OTTLA_OK and self._make_room(walk.count, view.len):
                    state = OTTLA_MEMORY
                while state == OTTLA_OK:
                    state = self._put(&walk, timestamp_type)
                    if state == OTTLA_OK:
                        state = ottla_walk_next(&walk)
            if state == OTTLA_MEMORY:
                raise MemoryError()
            if state == OTTLA_COLUMN_FULL:
                raise errors.column_full()
            _stop(state, &walk)
        finally:
            PyBuffer_Release(&view)

    def finish(self):
        """The columns; the decoder is spent."""
        cdef int64_t row_count = self._key.rows
        cdef int64_t header_count = self._header_name.rows
        self._header_offsets.size = (row_count + 1) * 4
        return DecodedColumns(
            row_count, _binary_finish(&self._key), _binary_finish(&self._value), _hand_over(&self._offset),
            _hand_over(&self._timestamp), _hand_over(&self._timestamp_type), _hand_over(&self._header_offsets),
            header_count, _binary_finish(&self._header_name), _binary_finish(&self._header_value))
