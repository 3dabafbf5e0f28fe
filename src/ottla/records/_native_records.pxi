# The records of a batch: Python objects out of a payload, a payload out of Python objects, and walks that only look.

from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8


@cython.no_gc
@cython.freelist(256)
cdef class Record:
    """One record. `offset` and `timestamp` are -1 where none was given; `headers` are pairs of name and bytes."""

    cdef public int64_t offset
    cdef public int64_t timestamp
    cdef public object key
    cdef public object value
    cdef public object headers

    def __init__(self, int64_t offset=-1, int64_t timestamp=-1, key=None, value=None, headers=()):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return (self.offset, self.timestamp, self.key, self.value, self.headers) == (
            other.offset, other.timestamp, other.key, other.value, other.headers)

    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )


cdef void _begin(ottla_walk *walk, Py_buffer *payload, BatchHeader header) noexcept:
    ottla_walk_begin(walk, <const uint8_t *>payload.buf, payload.len, header.record_count, header.base_offset,
                     header.base_timestamp, header.max_timestamp, header.attributes & LOG_APPEND_TIME_BIT)


cdef int _stop(int state, ottla_walk *walk) except -1:
    """Nothing after the last record, an exception after a fault."""
    if state != OTTLA_END:
        raise errors.record_fault(state, walk.index)
    return 0


cdef object _bytes_or_none(const uint8_t *data, int32_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *>data, size)


cdef tuple _headers_of(const ottla_record *record, const uint8_t *end):
    cdef const uint8_t *at = record.headers
    cdef ottla_header header
    cdef list pairs = []
    for _ in range(record.header_count):
        if ottla_next_header(&at, end, &header) != OTTLA_OK:
            raise RuntimeError("the payload changed while it was read")
        pairs.append((
            PyUnicode_DecodeUTF8(<const char *>header.key, header.key_size, "replace"),
            _bytes_or_none(header.value, header.value_size),
        ))
    return tuple(pairs)


def decode_records(payload, BatchHeader header not None):
    """The records of a decompressed payload."""
    cdef Py_buffer view
    cdef ottla_walk walk
    cdef Record record
    cdef int state
    cdef list records = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        _begin(&walk, &view, header)
        state = ottla_walk_next(&walk)
        while state == OTTLA_OK:
            record = Record.__new__(Record)
            record.offset = walk.offset
            record.timestamp = walk.timestamp
            record.key = _bytes_or_none(walk.record.key, walk.record.key_size)
            record.value = _bytes_or_none(walk.record.value, walk.record.value_size)
            record.headers = _headers_of(&walk.record, walk.end) if walk.record.header_count else ()
            records.append(record)
            state = ottla_walk_next(&walk)
        _stop(state, &walk)
    finally:
        PyBuffer_Release(&view)
    return records


def check_records(payload, BatchHeader header not None):
    """Walk all records: lengths, count, and offset deltas that count from 0 to the header's last offset delta."""
    cdef Py_buffer view
    cdef ottla_walk walk
    cdef int state
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        _begin(&walk, &view, header)
        with nogil:
            state = ottla_walk_next(&walk)
            while state == OTTLA_OK:
                if walk.record.offset_delta != walk.index:
                    state = OTTLA_OFFSET_ORDER
                    break
                state = ottla_walk_next(&walk)
        _stop(state, &walk)
        if header.last_offset_delta != <int64_t>header.record_count - 1:
            raise errors.last_offset_delta_differs(header.last_offset_delta, header.record_count)
    finally:
        PyBuffer_Release(&view)


def find_refused(payload, BatchHeader header not None, bint needs_key, int64_t earliest_ms, int64_t latest_ms,
                 Py_ssize_t limit):
    """The places of records without a key, where one is needed, and of other records whose time is out of limits.

    The walk ends with the record that makes `limit` of them. -1, which is no time, is within all limits.
    """
    cdef Py_buffer view
    cdef ottla_walk walk
    cdef int state
    cdef list keyless = [], mistimed = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        _begin(&walk, &view, header)
        while len(keyless) + len(mistimed) < limit:
            with nogil:
                state = ottla_walk_next(&walk)
                while state == OTTLA_OK:
                    if needs_key and walk.record.key_size < 0:
                        break
                    if walk.timestamp != -1 and (walk.timestamp < earliest_ms or walk.timestamp > latest_ms):
                        break
                    state = ottla_walk_next(&walk)
            if state != OTTLA_OK:
                _stop(state, &walk)
                break
            (keyless if needs_key and walk.record.key_size < 0 else mistimed).append(walk.index)
    finally:
        PyBuffer_Release(&view)
    return keyless, mistimed


def first_at_or_after(payload, BatchHeader header not None, int64_t target_ms):
    """Offset and timestamp of the first record whose timestamp is not before `target_ms`."""
    cdef Py_buffer view
    cdef ottla_walk walk
    cdef int state
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        _begin(&walk, &view, header)
        with nogil:
            state = ottla_walk_next(&walk)
            while state == OTTLA_OK and walk.timestamp < target_ms:
                state = ottla_walk_next(&walk)
        if state == OTTLA_OK:
            return walk.offset, walk.timestamp
        _stop(state, &walk)
    finally:
        PyBuffer_Release(&view)
    return None


def latest_timestamp(payload, BatchHeader header not None):
    """Offset and timestamp of the first record with the largest timestamp; (-1, -1) without records."""
    cdef Py_buffer view
    cdef ottla_walk walk
    cdef int state
    cdef int64_t offset = -1, largest = -1
    cdef bint found = False
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        _begin(&walk, &view, header)
        with nogil:
            state = ottla_walk_next(&walk)
            while state == OTTLA_OK:
                if not found or walk.timestamp > largest:
                    found = True
                    offset = walk.offset
                    largest = walk.timestamp
                state = ottla_walk_next(&walk)
        _stop(state, &walk)
    finally:
        PyBuffer_Release(&view)
    return offset, largest


cdef object _as_bytes(object data):
    if data is None or type(data) is bytes:
        return data
    return bytes(memoryview(data))


cdef inline uint8_t *_put_bytes(uint8_t *at, object data):
    cdef Py_ssize_t size
    if data is None:
        return ottla_put_varint(at, -1)
    size = PyBytes_GET_SIZE(data)
    at = ottla_put_varint(at, size)
    memcpy(at, PyBytes_AS_STRING(data), size)
    return at + size


cdef inline int64_t _bytes_size(object data):
    cdef int64_t size
    if data is None:
        return 1
    size = PyBytes_GET_SIZE(data)
    return size + ottla_varint_size(size)


cdef class RecordEncoder:
    """Grows the payload of one batch record by record. A refused record leaves it as it was."""

    cdef uint8_t *_data
    cdef Py_ssize_t _size
    cdef Py_ssize_t _capacity
    cdef readonly int32_t record_count
    cdef readonly int32_t last_offset_delta
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp

    def __cinit__(self):
        self.last_offset_delta = -1
        self.base_timestamp = -1
        self.max_timestamp = -1

    def __dealloc__(self):
        free(self._data)

    @property
    def size_bytes(self):
        """The size of the batch so far, if it is not compressed."""
        return self._size + HEADER

    cdef int _reserve(self, int64_t more) except -1:
        cdef Py_ssize_t capacity
        cdef uint8_t *data
        if more > INT32_MAX - HEADER - self._size:
            raise errors.payload_too_large(self._size + more)
        if self._size + more <= self._capacity:
            return 0
        capacity = max(self._capacity * 2, self._size + more, 1024)
        data = <uint8_t *>realloc(self._data, capacity)
        if data == NULL:
            raise MemoryError()
        self._data = data
        self._capacity = capacity
        return 0

    cdef int _append(self, int64_t timestamp, object key, object value, object headers,
                     int64_t offset_delta) except -1:
        cdef int64_t base_timestamp = self.base_timestamp if self.record_count else timestamp
        cdef int64_t timestamp_delta, body
        cdef uint8_t *at
        cdef Py_ssize_t name_size
        cdef const char *name
        cdef list pairs = None
        if not ottla_subtract64(timestamp, base_timestamp, &timestamp_delta):
            raise errors.timestamp_distance(base_timestamp, timestamp)
        if offset_delta <= self.last_offset_delta or offset_delta > INT32_MAX:
            raise ValueError(f"an offset delta after {self.last_offset_delta} expected, {offset_delta} came")
        key = _as_bytes(key)
        value = _as_bytes(value)
        body = 1 + ottla_varint_size(timestamp_delta) + ottla_varint_size(offset_delta)
        body += _bytes_size(key) + _bytes_size(value)
        if type(headers) is tuple and not headers:
            body += 1
        else:
            pairs = [(header_name, _as_bytes(header_value)) for header_name, header_value in headers]
            body += ottla_varint_size(len(pairs))
            for header_name, header_value in pairs:
                PyUnicode_AsUTF8AndSize(header_name, &name_size)
                body += ottla_varint_size(name_size) + name_size + _bytes_size(header_value)
        self._reserve(body + ottla_varint_size(body))
        at = ottla_put_varint(self._data + self._size, body)
        at[0] = 0
        at = ottla_put_varint(at + 1, timestamp_delta)
        at = ottla_put_varint(at, offset_delta)
        at = _put_bytes(at, key)
        at = _put_bytes(at, value)
        if pairs is None:
            at = ottla_put_varint(at, 0)
        else:
            at = ottla_put_varint(at, len(pairs))
            for header_name, header_value in pairs:
                name = PyUnicode_AsUTF8AndSize(header_name, &name_size)
                at = ottla_put_varint(at, name_size)
                memcpy(at, name, name_size)
                at = _put_bytes(at + name_size, header_value)
        self._size = at - self._data
        if not self.record_count or timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.base_timestamp = base_timestamp
        self.last_offset_delta = <int32_t>offset_delta
        self.record_count += 1
        return 0

    def append(self, int64_t timestamp, key, value, headers=()):
        """Add a record with the next offset; gives the size of the batch with it, uncompressed."""
        self._append(timestamp, key, value, headers, <int64_t>self.last_offset_delta + 1)
        return self._size + HEADER

    def append_at(self, int64_t offset_delta, int64_t timestamp, key, value, headers=()):
        """Add a record at an offset of its own, after the last one's (a compacted batch has gaps)."""
        self._append(timestamp, key, value, headers, offset_delta)
        return self._size + HEADER

    def extend(self, records, int64_t default_timestamp=-1, base_offset=None):
        """Add records; those without a timestamp get the default. With a base offset they keep their offsets."""
        cdef int64_t timestamp, offset_delta
        cdef int64_t base = 0 if base_offset is None else base_offset
        cdef bint keep = base_offset is not None
        cdef Record own
        for record in records:
            if type(record) is Record:
                own = record
                timestamp = own.timestamp
                if keep:
                    if not ottla_subtract64(own.offset, base, &offset_delta):
                        raise OverflowError(f"a 64-bit offset delta expected, {own.offset} after {base} came")
                else:
                    offset_delta = <int64_t>self.last_offset_delta + 1
                self._append(default_timestamp if timestamp == -1 else timestamp, own.key, own.value, own.headers,
                             offset_delta)
            else:
                timestamp = record.timestamp
                if keep:
                    if not ottla_subtract64(record.offset, base, &offset_delta):
                        raise OverflowError(f"a 64-bit offset delta expected, {record.offset} after {base} came")
                else:
                    offset_delta = <int64_t>self.last_offset_delta + 1
                self._append(default_timestamp if timestamp == -1 else timestamp, record.key, record.value,
                             record.headers, offset_delta)

    def payload(self):
        """The records so far, as bytes of their own."""
        return PyBytes_FromStringAndSize(<const char *>self._data, self._size)
