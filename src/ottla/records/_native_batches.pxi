# The 61-byte header of a batch: reading it, checking it, and the few fields that are rewritten in place.
#
#    0 base offset int64          12 leader epoch int32      27 base timestamp int64    51 producer epoch int16
#    8 length int32 (after here)  16 magic int8              35 max timestamp int64     53 base sequence int32
#                                 17 crc uint32 (after here) 43 producer id int64       57 record count int32
#                                 21 attributes int16
#                                 23 last offset delta int32                            61 records

cdef enum:
    HEADER = 61
    BEFORE_LENGTH_ENDS = 12
    SMALLEST_LENGTH = 49
    MAGIC_AT = 16
    CRC_AT = 17
    CRC_FROM = 21
    MAX_TIMESTAMP_AT = 35
    # Below this the checksum takes less time than giving the interpreter away and getting it back.
    RELEASE_GIL_BYTES = 262144
    LOG_APPEND_TIME_BIT = 0x08
    TRANSACTIONAL_BIT = 0x10
    CONTROL_BIT = 0x20

cdef tuple _CODECS = tuple(Codec)


@cython.no_gc
@cython.freelist(64)
cdef class BatchHeader:
    """The header of one batch, as read; nothing here follows later changes of the bytes."""

    cdef public int64_t base_offset
    cdef public int64_t size_bytes
    cdef public int32_t partition_leader_epoch
    cdef public int magic
    cdef public uint32_t crc
    cdef public int16_t attributes
    cdef public int32_t last_offset_delta
    cdef public int64_t base_timestamp
    cdef public int64_t max_timestamp
    cdef public int64_t producer_id
    cdef public int16_t producer_epoch
    cdef public int32_t base_sequence
    cdef public int32_t record_count

    def __init__(self, *, int64_t base_offset=0, int64_t size_bytes=HEADER, int32_t partition_leader_epoch=-1,
                 int magic=2, uint32_t crc=0, int16_t attributes=0, int32_t last_offset_delta=0,
                 int64_t base_timestamp=-1, int64_t max_timestamp=-1, int64_t producer_id=-1,
                 int16_t producer_epoch=-1, int32_t base_sequence=-1, int32_t record_count=0):
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    @property
    def compression(self):
        cdef int number = self.attributes & 0x07
        if number > 4:
            raise errors.unknown_codec(number)
        return _CODECS[number]

    @property
    def is_transactional(self):
        return (self.attributes & TRANSACTIONAL_BIT) != 0

    @property
    def is_control(self):
        return (self.attributes & CONTROL_BIT) != 0

    @property
    def has_log_append_time(self):
        return (self.attributes & LOG_APPEND_TIME_BIT) != 0

    @property
    def has_producer(self):
        return self.producer_id >= 0

    @property
    def last_offset(self):
        return <object>self.base_offset + self.last_offset_delta

    @property
    def next_offset(self):
        return <object>self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self):
        if self.base_sequence < 0:
            return -1
        return (<int64_t>self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    cdef tuple _fields(self):
        return (self.base_offset, self.size_bytes, self.partition_leader_epoch, self.magic, self.crc,
                self.attributes, self.last_offset_delta, self.base_timestamp, self.max_timestamp, self.producer_id,
                self.producer_epoch, self.base_sequence, self.record_count)

    def __eq__(self, other):
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return self._fields() == (<BatchHeader>other)._fields()

    def __repr__(self):
        return (
            f"BatchHeader(base_offset={self.base_offset}, size_bytes={self.size_bytes}, "
            f"partition_leader_epoch={self.partition_leader_epoch}, magic={self.magic}, crc={self.crc}, "
            f"attributes={self.attributes}, last_offset_delta={self.last_offset_delta}, "
            f"base_timestamp={self.base_timestamp}, max_timestamp={self.max_timestamp}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, "
            f"base_sequence={self.base_sequence}, record_count={self.record_count})"
        )


cdef uint32_t _crc(const uint8_t *data, Py_ssize_t size) noexcept:
    cdef uint32_t value
    if size < RELEASE_GIL_BYTES:
        return ottla_crc32c(0, data, size)
    with nogil:
        value = ottla_crc32c(0, data, size)
    return value


cdef BatchHeader _header_at(const uint8_t *data, Py_ssize_t size, Py_ssize_t position):
    cdef BatchHeader header
    cdef const uint8_t *at = data + position
    cdef Py_ssize_t remaining = size - position
    cdef int32_t length
    if remaining <= MAGIC_AT:
        raise errors.short_header(position, max(remaining, 0), <int>HEADER)
    if at[MAGIC_AT] != 2:
        raise errors.unknown_magic(position, <int>(<signed char>at[MAGIC_AT]))
    if remaining < HEADER:
        raise errors.short_header(position, remaining, <int>HEADER)
    length = <int32_t>ottla_get32(at + 8)
    if length < SMALLEST_LENGTH:
        raise errors.impossible_length(position, length, <int>SMALLEST_LENGTH)
    header = BatchHeader.__new__(BatchHeader)
    header.base_offset = <int64_t>ottla_get64(at)
    header.size_bytes = <int64_t>length + BEFORE_LENGTH_ENDS
    header.partition_leader_epoch = <int32_t>ottla_get32(at + 12)
    header.magic = 2
    header.crc = ottla_get32(at + CRC_AT)
    header.attributes = <int16_t>ottla_get16(at + 21)
    header.last_offset_delta = <int32_t>ottla_get32(at + 23)
    header.base_timestamp = <int64_t>ottla_get64(at + 27)
    header.max_timestamp = <int64_t>ottla_get64(at + MAX_TIMESTAMP_AT)
    header.producer_id = <int64_t>ottla_get64(at + 43)
    header.producer_epoch = <int16_t>ottla_get16(at + 51)
    header.base_sequence = <int32_t>ottla_get32(at + 53)
    header.record_count = <int32_t>ottla_get32(at + 57)
    return header


cdef list _scan(object buffer, bint ignore_partial_tail, bint check):
    cdef Py_buffer view
    cdef Py_ssize_t position = 0, remaining
    cdef const uint8_t *data
    cdef BatchHeader header
    cdef uint32_t computed
    cdef list headers = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *>view.buf
        while position < view.len:
            remaining = view.len - position
            if ignore_partial_tail and remaining < HEADER:
                break
            header = _header_at(data, view.len, position)
            if header.size_bytes > remaining:
                if ignore_partial_tail:
                    break
                raise errors.cut_batch(position, header.size_bytes, remaining)
            if check:
                computed = _crc(data + position + CRC_FROM, header.size_bytes - CRC_FROM)
                if computed != header.crc:
                    raise errors.wrong_crc(position, header.crc, computed)
            headers.append(header)
            position += header.size_bytes
    finally:
        PyBuffer_Release(&view)
    return headers


cdef int _need(Py_ssize_t position) except -1:
    if position < 0:
        raise ValueError(f"a position of 0 or more expected, {position} came")
    return 0


def crc32c(data, uint32_t value=0):
    """The CRC-32C of `data`, going on from `value`."""
    cdef Py_buffer view
    cdef uint32_t crc
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len < RELEASE_GIL_BYTES:
            crc = ottla_crc32c(value, <const uint8_t *>view.buf, view.len)
        else:
            with nogil:
                crc = ottla_crc32c(value, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return crc


def crc32c_portable(data, uint32_t value=0):
    """The same by tables alone: what machines without the instruction use."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return ottla_crc32c_portable(value, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def read_header(buffer, Py_ssize_t position=0):
    """The header at `position`; the rest of its batch need not be in the buffer."""
    cdef Py_buffer view
    _need(position)
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        return _header_at(<const uint8_t *>view.buf, view.len, position)
    finally:
        PyBuffer_Release(&view)


def scan_headers(buffer, bint ignore_partial_tail=False):
    """The headers of a buffer of whole batches."""
    return _scan(buffer, ignore_partial_tail, False)


def inspect_batches(buffer, bint ignore_partial_tail=False):
    """The headers of a buffer of whole batches, each one's CRC checked."""
    return _scan(buffer, ignore_partial_tail, True)


def check_crc(buffer, Py_ssize_t position, BatchHeader header not None):
    """Whether the whole batch is there and its bytes give the CRC in `header`."""
    cdef Py_buffer view
    _need(position)
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if header.size_bytes < HEADER or header.size_bytes > view.len - position:
            return False
        return _crc(<const uint8_t *>view.buf + position + CRC_FROM, header.size_bytes - CRC_FROM) == header.crc
    finally:
        PyBuffer_Release(&view)


def assign_offset(buffer, Py_ssize_t position, int64_t base_offset, int32_t leader_epoch):
    """Write base offset and leader epoch of the batch at `position`; both lie outside the CRC."""
    cdef Py_buffer view
    cdef uint8_t *at
    _need(position)
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        if view.len - position < HEADER:
            raise errors.short_header(position, max(view.len - position, 0), <int>HEADER)
        at = <uint8_t *>view.buf + position
        ottla_put64(at, <uint64_t>base_offset)
        ottla_put32(at + 12, <uint32_t>leader_epoch)
    finally:
        PyBuffer_Release(&view)


def set_log_append_time(buffer, Py_ssize_t position, int64_t timestamp_ms):
    """Give the batch at `position` log-append time, and the CRC that goes with it."""
    cdef Py_buffer view
    cdef uint8_t *at
    cdef BatchHeader header
    _need(position)
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        header = _header_at(<const uint8_t *>view.buf, view.len, position)
        if header.size_bytes > view.len - position:
            raise errors.cut_batch(position, header.size_bytes, view.len - position)
        at = <uint8_t *>view.buf + position
        ottla_put16(at + CRC_FROM, <uint16_t>(header.attributes | LOG_APPEND_TIME_BIT))
        ottla_put64(at + MAX_TIMESTAMP_AT, <uint64_t>timestamp_ms)
        ottla_put32(at + CRC_AT, _crc(at + CRC_FROM, header.size_bytes - CRC_FROM))
    finally:
        PyBuffer_Release(&view)


cdef void _write_frame(uint8_t *at, const Py_buffer *payload, int64_t base_offset, int32_t leader_epoch,
                       int16_t attributes, int32_t last_offset_delta, int64_t base_timestamp, int64_t max_timestamp,
                       int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
                       int32_t record_count) noexcept:
    ottla_put64(at, <uint64_t>base_offset)
    ottla_put32(at + 8, <uint32_t>(HEADER - BEFORE_LENGTH_ENDS + payload.len))
    ottla_put32(at + 12, <uint32_t>leader_epoch)
    at[MAGIC_AT] = 2
    ottla_put16(at + CRC_FROM, <uint16_t>attributes)
    ottla_put32(at + 23, <uint32_t>last_offset_delta)
    ottla_put64(at + 27, <uint64_t>base_timestamp)
    ottla_put64(at + MAX_TIMESTAMP_AT, <uint64_t>max_timestamp)
    ottla_put64(at + 43, <uint64_t>producer_id)
    ottla_put16(at + 51, <uint16_t>producer_epoch)
    ottla_put32(at + 53, <uint32_t>base_sequence)
    ottla_put32(at + 57, <uint32_t>record_count)
    memcpy(at + HEADER, payload.buf, payload.len)
    ottla_put32(at + CRC_AT, _crc(at + CRC_FROM, HEADER - CRC_FROM + payload.len))


def frame_batch(payload, int64_t base_offset, int32_t leader_epoch, int16_t attributes, int32_t last_offset_delta,
                int64_t base_timestamp, int64_t max_timestamp, int64_t producer_id, int16_t producer_epoch,
                int32_t base_sequence, int32_t record_count):
    """A whole batch: the header with its CRC, then `payload`, which is compressed already if it is to be."""
    cdef Py_buffer view
    cdef bytes batch
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        if view.len > INT32_MAX - HEADER:
            raise errors.payload_too_large(view.len)
        batch = PyBytes_FromStringAndSize(NULL, HEADER + view.len)
        _write_frame(<uint8_t *>PyBytes_AS_STRING(batch), &view, base_offset, leader_epoch, attributes,
                     last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence,
                     record_count)
    finally:
        PyBuffer_Release(&view)
    return batch


def frame_passing_batch(payload, *fields):
    """`frame_batch` for a batch that is sent and forgotten: a large one comes in memory that others were in."""
    cdef Py_buffer view
    cdef ottla_block block
    if len(payload) < OTTLA_LARGE:
        return frame_batch(payload, *fields)
    block.data = NULL
    block.capacity = block.size = 0
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        if view.len > INT32_MAX - HEADER:
            raise errors.payload_too_large(view.len)
        _reserve(&block, HEADER + view.len)
        block.size = HEADER + view.len
        _write_frame(block.data, &view, fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6],
                     fields[7], fields[8], fields[9])
        return memoryview(_hand_over(&block))
    finally:
        _let_go(block.data, block.capacity)
        PyBuffer_Release(&view)


def joined(list parts not None):
    """One piece of several, in memory that others were in if it is large."""
    cdef ottla_block block
    cdef Py_ssize_t size = 0
    cdef bytes part
    for part in parts:
        size += PyBytes_GET_SIZE(part)
    if size < OTTLA_LARGE:
        return b"".join(parts)
    block.data = NULL
    block.size = block.capacity = 0
    _reserve(&block, size)
    for part in parts:
        memcpy(block.data + block.size, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part))
        block.size += PyBytes_GET_SIZE(part)
    return memoryview(_hand_over(&block))
