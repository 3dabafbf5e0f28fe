# Rows of a key column grouped by the partition that their key picks, without a Python object for a row.


cdef class _Rows:
    """The rows of one Arrow binary column; its buffers may come from anywhere, so nothing in them is believed."""

    cdef const uint8_t[::1] _validity, _offsets, _data
    cdef bint _is_wide, _has_nulls
    cdef int64_t _first_row

    def __init__(self, column, int64_t row_count):
        cdef int64_t first_row = column.first_row
        self._is_wide = column.is_wide
        self._first_row = first_row
        if not 0 <= first_row < <int64_t>1 << 56 or not 0 <= row_count < <int64_t>1 << 56:
            raise faults.short_key_column()
        if column.validity is not None:
            self._has_nulls = True
            self._validity = memoryview(column.validity).cast("B")
            if self._validity.shape[0] * 8 < first_row + row_count:
                raise faults.short_key_column()
        self._offsets = memoryview(column.offsets).cast("B")
        if row_count and self._offsets.shape[0] < (first_row + row_count + 1) * (8 if self._is_wide else 4):
            raise faults.short_key_column()
        self._data = memoryview(b"" if column.data is None else column.data).cast("B")

    cdef bint _is_null(self, int64_t row) noexcept nogil:
        row += self._first_row
        return self._has_nulls and not (self._validity[row >> 3] >> (row & 7)) & 1

    cdef int64_t _offset(self, int64_t row) noexcept nogil:
        row += self._first_row
        if self._is_wide:
            return (<const int64_t *>&self._offsets[0])[row]
        return (<const int32_t *>&self._offsets[0])[row]


cdef int64_t _pick(_Rows keys, int64_t row_count, int32_t count, int32_t *picked, int64_t *sizes) noexcept nogil:
    """The partition of every row, `count` where the key is null; the row that is broken, or -1."""
    cdef int64_t row, start, end
    cdef int64_t data_bytes = keys._data.shape[0]
    for row in range(row_count):
        if keys._is_null(row):
            picked[row] = count
        else:
            start = keys._offset(row)
            end = keys._offset(row + 1)
            if start < 0 or end < start or end > data_bytes:
                return row
            if end == start:
                picked[row] = _partition_of(NULL, 0, count)
            else:
                picked[row] = _partition_of(&keys._data[start], end - start, count)
        sizes[picked[row]] += 1
    return -1


cdef void _order(int64_t row_count, int32_t count, const int32_t *picked, const int64_t *sizes, int64_t *places,
                 int64_t *rows) noexcept nogil:
    cdef int64_t row, place = 0
    cdef int32_t partition
    for partition in range(count + 1):
        places[partition] = place
        place += sizes[partition]
    for row in range(row_count):
        rows[places[picked[row]]] = row
        places[picked[row]] += 1


def rows_by_partition(key, int64_t row_count, int32_t partition_count):
    """Row numbers (64-bit, native order) grouped by partition, and how many each partition has; last, the null keys.

    `key` is a BinaryColumn. The rows of a partition keep their order.
    """
    cdef _Rows keys = _Rows(key, row_count)
    cdef bytearray grouped
    cdef int32_t *picked
    cdef int64_t *sizes
    cdef int64_t *rows
    cdef int64_t broken
    if partition_count < 1:
        raise ValueError(f"a partition at least expected, {partition_count} came")
    grouped = bytearray(row_count * 8)
    rows = <int64_t *><char *>grouped
    picked = <int32_t *>calloc(row_count + 1, sizeof(int32_t))
    sizes = <int64_t *>calloc(2 * (<size_t>partition_count + 1), sizeof(int64_t))
    try:
        if picked == NULL or sizes == NULL:
            raise MemoryError()
        with nogil:
            broken = _pick(keys, row_count, partition_count, picked, sizes)
            if broken < 0:
                _order(row_count, partition_count, picked, sizes, sizes + partition_count + 1, rows)
        if broken >= 0:
            raise faults.broken_key_column(broken)
        return grouped, [sizes[partition] for partition in range(partition_count + 1)]
    finally:
        free(picked)
        free(sizes)
