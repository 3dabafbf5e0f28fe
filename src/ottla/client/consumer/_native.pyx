# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=True
# cython: initializedcheck=False, embedsignature=False
"""The compiled twin of `_pure`: records as objects, and the walk over what was fetched. The same names and errors.

Everything here is called under the GIL, from the thread that takes records; the loop's thread only reads the offsets
of a chunk, changes its mode and releases it. Each of those is one step of the interpreter.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t

from ottla.client.consumer.batches import damaged, unpack, undecodable
from ottla.client.consumer.values import NO_TIMESTAMP, ChunkMode, TimestampType
from ottla.records.errors import record_fault

cdef extern from "_wire.h" nogil:
    enum:
        OTTLA_OK
        OTTLA_END

    ctypedef struct ottla_record:
        const uint8_t *key
        const uint8_t *value
        const uint8_t *headers
        int32_t key_size
        int32_t value_size
        int32_t header_count

    ctypedef struct ottla_header:
        const uint8_t *key
        const uint8_t *value
        int32_t key_size
        int32_t value_size

    ctypedef struct ottla_walk:
        const uint8_t *at
        const uint8_t *end
        int64_t offset
        int64_t timestamp
        int64_t index
        int64_t count
        ottla_record record

    int ottla_next_header(const uint8_t **cursor, const uint8_t *end, ottla_header *out)
    void ottla_walk_begin(ottla_walk *walk, const uint8_t *payload, size_t size, int64_t count, int64_t base_offset,
                          int64_t base_timestamp, int64_t max_timestamp, int has_log_append_time)
    int ottla_walk_next(ottla_walk *walk)

include "../_await.pxi"

cdef enum:
    READY = 0
    HELD = 1
    DROPPED = 2

cdef tuple _TIMESTAMP_TYPES = (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)
cdef tuple _MODES = tuple(ChunkMode)
cdef object _NOTHING = memoryview(b"")


@cython.final
@cython.no_gc
cdef class _Source:
    """What all records of one batch have in common."""

    cdef str topic
    cdef int32_t partition
    cdef int32_t leader_epoch
    cdef object timestamp_type


cdef tuple _decoded_headers(bytes raw, int32_t count):
    cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef const uint8_t *end = at + PyBytes_GET_SIZE(raw)
    cdef ottla_header header
    cdef list pairs = []
    for _ in range(count):
        if ottla_next_header(&at, end, &header) != OTTLA_OK:
            raise RuntimeError("the headers changed after they were checked")
        pairs.append((
            PyUnicode_DecodeUTF8(<const char *>header.key, header.key_size, "replace"),
            None if header.value_size < 0 else PyBytes_FromStringAndSize(<const char *>header.value, header.value_size),
        ))
    return tuple(pairs)


@cython.final
@cython.no_gc
@cython.freelist(512)
cdef class Record:
    """One record that was read. Headers are decoded when they are first looked at."""

    cdef _Source _source
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly object key
    cdef readonly object value
    cdef object _headers
    cdef int32_t _header_count

    def __init__(self, topic, int partition, int64_t offset, int64_t timestamp=NO_TIMESTAMP,
                 timestamp_type=TimestampType.CREATE_TIME, key=None, value=None, headers=(), int leader_epoch=-1):
        self._source = _Source.__new__(_Source)
        self._source.topic = topic
        self._source.partition = partition
        self._source.leader_epoch = leader_epoch
        self._source.timestamp_type = TimestampType(timestamp_type)
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self._headers = tuple(headers)
        self._header_count = -1

    @classmethod
    def __class_getitem__(cls, item):
        return cls

    @property
    def topic(self):
        return self._source.topic

    @property
    def partition(self):
        return self._source.partition

    @property
    def leader_epoch(self):
        return self._source.leader_epoch

    @property
    def timestamp_type(self):
        return self._source.timestamp_type

    @property
    def headers(self):
        if self._header_count >= 0:
            self._headers = _decoded_headers(<bytes>self._headers, self._header_count)
            self._header_count = -1
        return self._headers

    cdef tuple _fields(self):
        return (self.topic, self.partition, self.offset, self.timestamp, self.timestamp_type, self.key, self.value,
                self.headers, self.leader_epoch)

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields() == (<Record>other)._fields()

    def __hash__(self):
        return hash((self.topic, self.partition, self.offset))

    def __reduce__(self):
        return Record, self._fields()

    def __repr__(self):
        return (
            f"Record(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


@cython.final
cdef class Chunk:
    """What one fetch brought for one partition: batches, still compressed, and how far they were handed out.

    `next_offset` is the offset of the next record; `settled_offset` the one before which the user is done with
    everything. `release` gives up the bytes and tells how many they were, once.
    """

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t next_offset
    cdef public int64_t settled_offset
    cdef readonly int64_t end_offset
    cdef readonly int32_t next_epoch
    cdef readonly object data
    cdef readonly tuple entries
    cdef readonly object check_crcs
    cdef readonly object damage
    cdef object _decode_key
    cdef object _decode_value
    cdef Py_ssize_t _size_bytes
    cdef Py_ssize_t _at
    cdef int _mode
    cdef bint _is_open
    cdef int64_t _after_offset
    cdef object _header
    cdef object _memory
    cdef ottla_walk _walk
    cdef _Source _source

    def __init__(self, str topic, int partition, int64_t first_offset, int64_t end_offset, data, tuple entries,
                 int epoch=-1, check_crcs=True, damage=None, decode_key=None, decode_value=None):
        self.topic = topic
        self.partition = partition
        self.next_offset = self.settled_offset = first_offset
        self.end_offset = end_offset
        self.next_epoch = epoch
        self.data = data
        self.entries = entries
        self.check_crcs = check_crcs
        self.damage = damage
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._size_bytes = len(data)

    @property
    def mode(self):
        return _MODES[self._mode]

    @mode.setter
    def mode(self, value):
        if self._mode != DROPPED:
            self._mode = value

    @property
    def size_bytes(self):
        return self._size_bytes

    def release(self):
        """How many bytes were held; none when they were released before."""
        cdef Py_ssize_t size_bytes = self._size_bytes
        self._size_bytes = 0
        self._mode = DROPPED
        self.data = _NOTHING
        self.entries = ()
        return size_bytes

    def detach(self):
        """Keep the bytes of this chunk alone, not the whole answer that they came in."""
        if not self._is_open:
            self.data = memoryview(bytes(self.data))

    def settle(self):
        self.settled_offset = self.next_offset

    def move_to(self, int64_t offset):
        """Go on with the first record from that offset on."""
        self._leave()
        self._at = 0
        self.next_offset = offset
        for entry in self.entries:
            header = (<tuple>entry)[2]
            if header.base_offset >= offset:
                break
            self.next_epoch = header.partition_leader_epoch

    cdef void _leave(self):
        if self._is_open:
            self._is_open = False
            self._memory = None

    cdef int _enter(self) except -1:
        cdef tuple entry = <tuple>self.entries[self._at]
        cdef object header = entry[2]
        cdef _Source source
        cdef Py_buffer view
        cdef Py_buffer *below
        cdef const uint8_t *start
        cdef Py_ssize_t size
        payload = unpack(self, entry)
        # The memory is kept by its owner alone. A view of a view must not be held in here: where both are collected in
        # one cycle, the one below is cleared first, whoever still uses it.
        if isinstance(payload, memoryview):
            below = PyMemoryView_GET_BUFFER(payload)
            start, size = <const uint8_t *>below.buf, below.len
            self._memory = <object>below.obj
        else:
            PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
            start, size = <const uint8_t *>view.buf, view.len
            self._memory = payload
            PyBuffer_Release(&view)
        self._is_open = True
        ottla_walk_begin(&self._walk, start, size, header.record_count,
                         header.base_offset, header.base_timestamp, header.max_timestamp, header.has_log_append_time)
        source = _Source.__new__(_Source)
        source.topic = self.topic
        source.partition = self.partition
        source.leader_epoch = header.partition_leader_epoch
        source.timestamp_type = _TIMESTAMP_TYPES[1 if header.has_log_append_time else 0]
        self._source = source
        self._after_offset = entry[3]
        self._header = header
        return 0

    cdef Record _made(self):
        cdef Record record = Record.__new__(Record)
        cdef ottla_record *raw = &self._walk.record
        record._source = self._source
        record.offset = self._walk.offset
        record.timestamp = self._walk.timestamp
        if raw.key_size >= 0:
            record.key = PyBytes_FromStringAndSize(<const char *>raw.key, raw.key_size)
        if raw.value_size >= 0:
            record.value = PyBytes_FromStringAndSize(<const char *>raw.value, raw.value_size)
        if raw.header_count:
            record._headers = PyBytes_FromStringAndSize(<const char *>raw.headers, self._walk.at - raw.headers)
            record._header_count = raw.header_count
        else:
            record._headers = ()
            record._header_count = -1
        return record

    cdef int _decode(self, Record record) except -1:
        try:
            if self._decode_key is not None and record.key is not None:
                record.key = self._decode_key(self.topic, record.key)
            if self._decode_value is not None and record.value is not None:
                record.value = self._decode_value(self.topic, record.value)
        except Exception as error:
            self._leave()
            raise undecodable(self, record.offset, error) from error
        return 0

    cdef Record _next(self):
        """The next record; None when there is no more."""
        cdef Record record
        cdef int state
        while True:
            if not self._is_open:
                if self._at >= len(self.entries):
                    if self.damage is not None:
                        raise self.damage
                    if self.end_offset > self.next_offset:
                        self.next_offset = self.end_offset
                    return None
                if (<tuple>self.entries[self._at])[2].last_offset < self.next_offset:
                    self._at += 1
                    continue
                self._enter()
            state = ottla_walk_next(&self._walk)
            if state == OTTLA_OK:
                if self._walk.offset < self.next_offset:
                    continue
                record = self._made()
                if self._decode_key is not None or self._decode_value is not None:
                    self._decode(record)
                self.next_epoch = self._source.leader_epoch
                if self._walk.index == self._walk.count - 1 and self._after_offset > self._walk.offset:
                    self.next_offset = self._after_offset
                else:
                    self.next_offset = self._walk.offset + 1
                return record
            index = self._walk.index
            self._leave()
            if state != OTTLA_END:
                raise damaged(self, self._header, record_fault(state, index))
            if self._after_offset > self.next_offset:
                self.next_offset = self._after_offset
            self._at += 1

    def take(self, list records, Py_ssize_t limit):
        """Append up to `limit` records; fewer only when there are no more."""
        cdef Record record
        while limit > 0 and self._mode == READY:
            record = self._next()
            if record is None:
                break
            records.append(record)
            limit -= 1


@cython.final
cdef class RecordIterator:
    """Records one by one. `supply` gives the next chunk to read from, or None where the iteration ends; it may wait.

    To ask for a record is to be done with the one before.
    """

    cdef Chunk _chunk
    cdef object _supply

    def __init__(self, supply):
        self._supply = supply

    def __iter__(self):
        return self

    def __next__(self):
        cdef Record record
        cdef Chunk chunk
        while True:
            chunk = self._chunk
            if chunk is not None and chunk._mode == READY:
                chunk.settled_offset = chunk.next_offset
                record = chunk._next()
                if record is not None:
                    return record
                chunk.settled_offset = chunk.next_offset
            self._chunk = None
            self._chunk = self._supply()
            if self._chunk is None:
                raise StopIteration


@cython.final
cdef class AsyncRecordIterator:
    """The same with `async for`. What is buffered comes without a coroutine; every `burst` records, and when there is
    nothing, `supply` is awaited, so that the loop gets its turn. It ends where `supply` gives None."""

    cdef Chunk _chunk
    cdef object _supply
    cdef object _ready
    cdef Py_ssize_t _burst
    cdef Py_ssize_t _left

    def __init__(self, supply, Py_ssize_t burst):
        self._supply = supply
        self._burst = burst

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef Record record
        cdef Chunk chunk = self._chunk
        if self._left > 0 and chunk is not None and chunk._mode == READY:
            chunk.settled_offset = chunk.next_offset
            record = chunk._next()
            if record is not None:
                self._left -= 1
                self._ready = record
                return self
            chunk.settled_offset = chunk.next_offset
        return self._wait()

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        record, self._ready = self._ready, None
        raise StopIteration(record)

    async def _wait(self):
        cdef Record record
        while True:
            if self._chunk is not None and self._chunk._mode == READY:
                self._chunk.settled_offset = self._chunk.next_offset
            self._chunk = None
            chunk = await self._supply()
            if chunk is None:
                raise StopAsyncIteration
            self._chunk = chunk
            self._left = self._burst
            record = self._chunk._next()
            if record is not None:
                self._left -= 1
                return record
            self._chunk.settled_offset = self._chunk.next_offset


cdef PySendResult _send_record(PyObject *one, PyObject *sent, PyObject **result) except PYGEN_ERROR:
    cdef AsyncRecordIterator iterator = <AsyncRecordIterator>one
    record, iterator._ready = iterator._ready, None
    Py_INCREF(record)
    result[0] = <PyObject *>record
    return PYGEN_RETURN


ottla_answers_await(AsyncRecordIterator, _send_record)
