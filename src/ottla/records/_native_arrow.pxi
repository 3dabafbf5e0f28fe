# From records to Arrow buffers, without a Python object for a record and, but for making room, without the GIL.
#
# A payload bounds what its records can hold, so room for values and rows is made once for each batch and the loop
# (`_columns.h`) only copies.

cdef extern from "_columns.h" nogil:
    int OTTLA_SLACK

    ctypedef struct ottla_binary:
        ottla_block data
        ottla_block offsets
        ottla_block validity
        int64_t rows
        int64_t nulls

    ctypedef struct ottla_columns:
        ottla_binary key
        ottla_binary value
        ottla_block offset
        ottla_block timestamp
        ottla_block timestamp_type
        ottla_block header_offsets
        int64_t first_offset
        int64_t end_offset
        int64_t factor

    int ottla_binary_room(ottla_binary *column, int64_t rows, int64_t bytes)
    int ottla_binary_put(ottla_binary *column, const uint8_t *data, int32_t size, int has_slack)
    int ottla_put_rows(ottla_columns *to, ottla_walk *walk, int32_t timestamp_type, int with_headers,
                       int32_t header_rows)

cdef object _binary_finish(ottla_binary *column):
    cdef object validity = None
    column.offsets.size = (column.rows + 1) * 4
    column.validity.size = (column.rows + 7) // 8
    if column.nulls:
        validity = _hand_over(&column.validity)
    return BinaryColumn(validity, _hand_over(&column.offsets), _hand_over(&column.data), column.nulls)


cdef void _binary_free(ottla_binary *column) noexcept:
    _let_go(column.validity.data, column.validity.capacity)
    _let_go(column.offsets.data, column.offsets.capacity)
    _let_go(column.data.data, column.data.capacity)


@cython.final
cdef class ArrowDecoder:
    """Collects records as Arrow buffers. After an exception the decoder is spent.

    Rows outside [first_offset, end_offset) are left out; timestamps are multiplied by `timestamp_factor`.
    """

    cdef ottla_columns _columns
    cdef ottla_binary _header_name
    cdef ottla_binary _header_value
    cdef bint _with_headers

    def __cinit__(self, int64_t first_offset, int64_t end_offset, int64_t timestamp_factor, bint with_headers):
        self._columns.first_offset = first_offset
        self._columns.end_offset = end_offset
        self._columns.factor = timestamp_factor
        self._with_headers = with_headers
        if ottla_binary_room(&self._header_name, 0, 0) or ottla_binary_room(&self._header_value, 0, 0):
            raise MemoryError()

    def __dealloc__(self):
        _binary_free(&self._columns.key)
        _binary_free(&self._columns.value)
        _binary_free(&self._header_name)
        _binary_free(&self._header_value)
        _let_go(self._columns.offset.data, self._columns.offset.capacity)
        _let_go(self._columns.timestamp.data, self._columns.timestamp.capacity)
        _let_go(self._columns.timestamp_type.data, self._columns.timestamp_type.capacity)
        _let_go(self._columns.header_offsets.data, self._columns.header_offsets.capacity)

    def reserve(self, int64_t rows, int64_t payload_bytes):
        """Make room at once for more rows, whose payloads have about so many bytes: nothing follows from it if not."""
        cdef ottla_columns *columns = &self._columns
        cdef int64_t before = columns.value.rows
        cdef int64_t after = before + rows
        _reserve(&columns.value.data, columns.value.data.size + payload_bytes + OTTLA_SLACK)
        _reserve(&columns.value.offsets, (after + 1) * 4)
        _reserve(&columns.key.offsets, (after + 1) * 4)
        if ottla_binary_room(&columns.value, rows, 0) or ottla_binary_room(&columns.key, rows, 0):
            raise MemoryError()
        columns.offset.size = columns.timestamp.size = before * 8
        columns.timestamp_type.size = before * 4
        columns.header_offsets.size = (before + 1) * 4
        _reserve(&columns.offset, after * 8)
        _reserve(&columns.timestamp, after * 8)
        _reserve(&columns.timestamp_type, after * 4)
        _reserve(&columns.header_offsets, (after + 1) * 4)
        if before == 0:
            (<int32_t *>columns.header_offsets.data)[0] = 0

    cdef int _put_replaced_name(self, ottla_header *header, int64_t bytes_to_come) noexcept with gil:
        """A name that is not UTF-8 gets replacement characters, as it does when it becomes a `str`.

        They may take more room than was made for the name, so what is still to come gets its room again.
        """
        try:
            name = PyUnicode_DecodeUTF8(<const char *>header.key, header.key_size, "replace").encode()
        except MemoryError:
            return OTTLA_MEMORY
        if ottla_binary_room(&self._header_name, 1, len(name) + bytes_to_come):
            return OTTLA_MEMORY
        return ottla_binary_put(&self._header_name, <const uint8_t *>PyBytes_AS_STRING(name), <int32_t>len(name), 0)

    cdef inline int _put_name(self, ottla_header *header, int64_t bytes_to_come) noexcept nogil:
        if ottla_is_utf8(header.key, header.key_size):
            return ottla_binary_put(&self._header_name, header.key, header.key_size, 0)
        return self._put_replaced_name(header, bytes_to_come)

    cdef int _put_headers(self, ottla_walk *walk) noexcept nogil:
        """The headers of the record that was put last."""
        cdef const uint8_t *at = walk.record.headers
        cdef const uint8_t *end = walk.at
        cdef int32_t count = walk.record.header_count
        cdef ottla_header header
        cdef int state
        if self._header_name.rows + count > INT32_MAX:
            return OTTLA_COLUMN_FULL
        if (ottla_binary_room(&self._header_name, count, end - at)
                or ottla_binary_room(&self._header_value, count, end - at)):
            return OTTLA_MEMORY
        for _ in range(count):
            state = ottla_next_header(&at, end, &header)
            if state == OTTLA_OK:
                state = self._put_name(&header, end - at)
            if state == OTTLA_OK:
                state = ottla_binary_put(&self._header_value, header.value, header.value_size, 0)
            if state:
                return state
        (<int32_t *>self._columns.header_offsets.data)[self._columns.value.rows] = <int32_t>self._header_name.rows
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
            if ottla_walk_can_hold(&walk):
                # For all bytes, as if they were one value: the header may promise more records than there are.
                self.reserve(walk.count, view.len)
            with nogil:
                state = OTTLA_OK
                while state == OTTLA_OK:
                    state = ottla_put_rows(&self._columns, &walk, timestamp_type, self._with_headers,
                                           <int32_t>self._header_name.rows)
                    if state == OTTLA_OK:
                        state = self._put_headers(&walk)
            if state == OTTLA_MEMORY:
                raise MemoryError()
            if state == OTTLA_COLUMN_FULL:
                raise errors.column_full()
            _stop(state, &walk)
        finally:
            PyBuffer_Release(&view)

    def finish(self):
        """The columns; the decoder is spent."""
        cdef ottla_columns *columns = &self._columns
        cdef int64_t row_count = columns.value.rows
        cdef int64_t header_count = self._header_name.rows
        self.reserve(0, 0)
        columns.header_offsets.size = (row_count + 1) * 4
        return DecodedColumns(
            row_count, _binary_finish(&columns.key), _binary_finish(&columns.value), _hand_over(&columns.offset),
            _hand_over(&columns.timestamp), _hand_over(&columns.timestamp_type), _hand_over(&columns.header_offsets),
            header_count, _binary_finish(&self._header_name), _binary_finish(&self._header_value))
