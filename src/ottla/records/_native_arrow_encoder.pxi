# From Arrow buffers to the payloads of batches, without a Python object for a row and without the GIL.
#
# The buffers may come from anywhere, so nothing in them is believed: their sizes are checked against the number of
# rows when the encoder is made, and each offset against its data when its row is written.

ctypedef struct Column:
    # A column that is not there has no rows to look at: every row of it is null.
    bint present
    bint wide
    int64_t first_row
    int64_t data_bytes
    const uint8_t *validity
    const uint8_t *offsets
    const uint8_t *data


cdef inline bint _is_null(const Column *column, int64_t row) noexcept nogil:
    cdef int64_t bit = column.first_row + row
    if not column.present:
        return True
    return column.validity != NULL and not (column.validity[bit >> 3] >> (bit & 7)) & 1


cdef inline int64_t _offset_of(const Column *column, int64_t row) noexcept nogil:
    if column.wide:
        return (<const int64_t *>column.offsets)[column.first_row + row]
    return (<const int32_t *>column.offsets)[column.first_row + row]


cdef inline int _range_of(const Column *column, int64_t row, int64_t limit, int64_t *start,
                          int64_t *size) noexcept nogil:
    """Where a row's bytes (or list items) lie; a size of -1 for null."""
    cdef int64_t end
    start[0] = 0
    size[0] = -1
    if _is_null(column, row):
        return OTTLA_OK
    start[0] = _offset_of(column, row)
    end = _offset_of(column, row + 1)
    if start[0] < 0 or end < start[0] or end > limit:
        return OTTLA_COLUMN_BROKEN
    size[0] = end - start[0]
    return OTTLA_OK


cdef inline int64_t _sized(int64_t size) noexcept nogil:
    return 1 if size < 0 else size + ottla_varint_size(size)


cdef inline uint8_t *_put_range(uint8_t *at, const Column *column, int64_t start, int64_t size) noexcept nogil:
    at = ottla_put_varint(at, size)
    if size <= 0:
        return at
    memcpy(at, column.data + start, size)
    return at + size


cdef class ArrowEncoder:
    """Turns the rows of one Arrow batch into payloads, in order, each as large as allowed.

    Columns are BinaryColumn, NumberColumn or ListColumn, or None where there is none. A null timestamp becomes the
    default one, a null list of headers no headers. `rows` are the numbers of the rows to take, 64 bits each, in that
    order; all where there are none.
    """

    cdef list _views
    cdef int64_t _table_rows
    cdef int64_t _row_count
    cdef const int64_t *_rows
    cdef int64_t _header_count
    cdef int64_t _next_row
    cdef int64_t _default_timestamp
    cdef Column _key
    cdef Column _value
    cdef Column _timestamp
    cdef Column _headers
    cdef Column _header_name
    cdef Column _header_value

    def __init__(self, int64_t row_count, key, value, timestamp, int64_t default_timestamp, headers,
                 int64_t header_count, header_name, header_value, rows=None):
        self._views = []
        self._table_rows = self._row_count = row_count
        if rows is not None:
            self._rows = <const int64_t *>self._load(rows, 0, "rows")
            self._row_count = len(memoryview(rows).cast("B")) // 8
        self._header_count = header_count
        self._default_timestamp = default_timestamp
        self._load_binary(&self._key, key, row_count, "key")
        self._load_binary(&self._value, value, row_count, "value")
        if timestamp is not None:
            self._load_rows(&self._timestamp, timestamp, row_count, "timestamp")
            self._timestamp.data = self._load(timestamp.data, (timestamp.first_row + row_count) * 8, "timestamp")
        if headers is not None:
            self._load_offsets(&self._headers, headers, row_count, "headers")
            self._load_binary(&self._header_name, header_name, header_count, "headers.key")
            self._load_binary(&self._header_value, header_value, header_count, "headers.value")

    cdef const uint8_t *_load(self, object buffer, int64_t least_bytes, str what) except NULL:
        cdef const uint8_t[::1] view = memoryview(buffer).cast("B")
        if view.shape[0] < least_bytes:
            raise errors.short_column(what)
        self._views.append(view)
        return &view[0] if view.shape[0] else <const uint8_t *>b""

    cdef int _load_rows(self, Column *column, object source, int64_t rows, str what) except -1:
        """What all columns have. No real buffer is near the limits here; below them no sum or product overflows."""
        cdef int64_t first_row = source.first_row
        if not 0 <= first_row < <int64_t>1 << 56 or not 0 <= rows < <int64_t>1 << 56:
            raise errors.short_column(what)
        column.present = True
        column.first_row = first_row
        if source.validity is not None:
            column.validity = self._load(source.validity, (first_row + rows + 7) // 8, what)
        return 0

    cdef int _load_offsets(self, Column *column, object source, int64_t rows, str what) except -1:
        self._load_rows(column, source, rows, what)
        column.wide = source.is_wide
        if rows:
            column.offsets = self._load(source.offsets, (column.first_row + rows + 1) * (8 if column.wide else 4), what)
        return 0

    cdef int _load_binary(self, Column *column, object source, int64_t rows, str what) except -1:
        if source is None:
            return 0
        self._load_offsets(column, source, rows, what)
        if source.data is not None:
            column.data = self._load(source.data, 0, what)
            column.data_bytes = len(memoryview(source.data).cast("B"))
        return 0

    cdef inline int64_t _timestamp_of(self, int64_t row) noexcept nogil:
        if _is_null(&self._timestamp, row):
            return self._default_timestamp
        return (<const int64_t *>self._timestamp.data)[self._timestamp.first_row + row]

    cdef int _headers_size(self, int64_t first, int64_t count, int64_t *size) noexcept nogil:
        cdef int64_t start, length, header
        size[0] = ottla_varint_size(count)
        for header in range(first, first + count):
            if _range_of(&self._header_name, header, self._header_name.data_bytes, &start, &length):
                return OTTLA_COLUMN_BROKEN
            if length < 0:
                return OTTLA_NO_NAME
            size[0] += _sized(length)
            if _range_of(&self._header_value, header, self._header_value.data_bytes, &start, &length):
                return OTTLA_COLUMN_BROKEN
            size[0] += _sized(length)
        return OTTLA_OK

    cdef uint8_t *_put_headers(self, uint8_t *at, int64_t first, int64_t count) noexcept nogil:
        cdef int64_t start = 0, size = 0, header
        at = ottla_put_varint(at, count)
        for header in range(first, first + count):
            _range_of(&self._header_name, header, self._header_name.data_bytes, &start, &size)
            at = _put_range(at, &self._header_name, start, size)
            _range_of(&self._header_value, header, self._header_value.data_bytes, &start, &size)
            at = _put_range(at, &self._header_value, start, size)
        return at

    cdef int _put_row(self, ottla_block *out, int64_t row, int64_t offset_delta, int64_t timestamp_delta,
                      int64_t max_bytes) noexcept nogil:
        """Write one row; OTTLA_END when it does not fit a batch that has rows already."""
        cdef int64_t key_start, key_size, value_start, value_size, header_start, header_count, headers_size, body, whole
        cdef uint8_t *at
        cdef int state
        if (_range_of(&self._key, row, self._key.data_bytes, &key_start, &key_size)
                or _range_of(&self._value, row, self._value.data_bytes, &value_start, &value_size)
                or _range_of(&self._headers, row, self._header_count, &header_start, &header_count)):
            return OTTLA_COLUMN_BROKEN
        if header_count < 0:
            header_count = 0
        state = self._headers_size(header_start, header_count, &headers_size)
        if state:
            return state
        body = 1 + ottla_varint_size(timestamp_delta) + ottla_varint_size(offset_delta)
        body += _sized(key_size) + _sized(value_size) + headers_size
        whole = body + ottla_varint_size(body)
        if out.size + whole > INT32_MAX - HEADER:
            return OTTLA_END if offset_delta else OTTLA_TOO_LARGE
        if offset_delta and HEADER + out.size + whole > max_bytes:
            return OTTLA_END
        if ottla_block_room(out, whole):
            return OTTLA_MEMORY
        at = ottla_put_varint(out.data + out.size, body)
        at[0] = 0
        at = ottla_put_varint(at + 1, timestamp_delta)
        at = ottla_put_varint(at, offset_delta)
        at = _put_range(at, &self._key, key_start, key_size)
        at = _put_range(at, &self._value, value_start, value_size)
        at = self._put_headers(at, header_start, header_count)
        out.size = at - out.data
        return OTTLA_OK

    cdef int _put_rows(self, ottla_block *out, int64_t max_bytes, int64_t *base_timestamp,
                       int64_t *max_timestamp) noexcept nogil:
        cdef int64_t first = self._next_row
        cdef int64_t row, timestamp = 0, delta
        cdef int state
        while self._next_row < self._row_count and self._next_row - first < INT32_MAX:
            row = self._next_row if self._rows == NULL else self._rows[self._next_row]
            if not 0 <= row < self._table_rows:
                return OTTLA_COLUMN_BROKEN
            timestamp = self._timestamp_of(row)
            if self._next_row == first:
                base_timestamp[0] = max_timestamp[0] = timestamp
            if not ottla_subtract64(timestamp, base_timestamp[0], &delta):
                return OTTLA_TIME_DISTANCE
            state = self._put_row(out, row, self._next_row - first, delta, max_bytes)
            if state:
                return state
            if timestamp > max_timestamp[0]:
                max_timestamp[0] = timestamp
            self._next_row += 1
        return OTTLA_END

    def next_batch(self, int64_t max_bytes):
        """The next rows as a payload whose batch is at most `max_bytes`, or one larger row; None after the last."""
        cdef ottla_block out
        cdef int64_t base_timestamp = -1, max_timestamp = -1, first = self._next_row, row = -1
        cdef int state
        if first >= self._row_count:
            return None
        out.data = NULL
        out.size = out.capacity = 0
        try:
            _reserve(&out, min(max(max_bytes, 1024), 1 << 24))
            with nogil:
                state = self._put_rows(&out, max_bytes, &base_timestamp, &max_timestamp)
            if state == OTTLA_MEMORY:
                raise MemoryError()
            if self._next_row < self._row_count:
                row = self._next_row if self._rows == NULL else self._rows[self._next_row]
            if state == OTTLA_COLUMN_BROKEN:
                raise errors.broken_column(row)
            if state == OTTLA_NO_NAME:
                raise errors.nameless_header(row)
            if state == OTTLA_TOO_LARGE:
                raise errors.row_too_large(row)
            if state == OTTLA_TIME_DISTANCE:
                raise errors.timestamp_distance(base_timestamp, self._timestamp_of(row))
            return EncodedRows(_hand_over(&out), self._next_row - first, base_timestamp, max_timestamp)
        finally:
            _let_go(out.data, out.capacity)
