# Compaction: the last offset of each key, and what stays of batches. The work itself is C (`_compaction.h`) and runs
# without the interpreter; compressed batches come back to the caller, who opens them.

cdef extern from "_compaction.h" nogil:
    enum:
        OTTLA_BAD_BATCH
        OTTLA_RUN_END
        OTTLA_RUN_LOOK
        OTTLA_RUN_FULL

    ctypedef struct ottla_offset_map:
        uint64_t slot_count
        uint64_t key_limit
        uint64_t key_count
        uint64_t seed[2]
        int64_t latest_offset

    ctypedef struct ottla_batch:
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        size_t size
        int32_t last_offset_delta
        int32_t count
        int attributes

    ctypedef struct ottla_filter:
        const ottla_offset_map *map
        const int64_t *kept
        size_t kept_count
        int64_t now_ms
        int64_t horizon_ms
        int64_t end_offset
        uint8_t *out
        size_t out_size
        size_t out_capacity
        uint8_t *stays
        int64_t base_timestamp
        int64_t max_timestamp
        int32_t stay_count
        int attributes
        int is_whole

    bint ottla_map_allocate(ottla_offset_map *map, uint64_t slot_count)
    void ottla_map_free(ottla_offset_map *map)
    int64_t ottla_map_get(const ottla_offset_map *map, const uint8_t *key, size_t size)
    int ottla_map_payload(ottla_offset_map *map, const ottla_batch *batch, const uint8_t *payload, size_t size,
                          int64_t start_offset, int64_t *index)
    int ottla_map_batches(ottla_offset_map *map, const uint8_t *data, size_t size, size_t *position,
                          int64_t start_offset, int64_t *index)
    int ottla_filter_payload(ottla_filter *filter, const ottla_batch *batch, const uint8_t *payload, size_t size,
                             int64_t *index)
    int ottla_filter_batches(ottla_filter *filter, const uint8_t *data, size_t size, size_t *position,
                             int64_t *index)
    bint ottla_keeps_empty(const ottla_filter *filter, int64_t last_offset, int64_t producer_id)

from ottla.records.types import FilteredRecords, RunEnd

cdef object _RUN_END = RunEnd.END
cdef object _RUN_LOOK = RunEnd.LOOK
cdef object _RUN_FULL = RunEnd.FULL


cdef object _run_end(int state, Py_buffer *view, Py_ssize_t position, int64_t index):
    """Why a run ended, or the exception for what is wrong with the batch at `position`."""
    cdef BatchHeader header
    cdef uint32_t computed
    if state == OTTLA_RUN_END:
        return _RUN_END
    if state == OTTLA_RUN_LOOK:
        return _RUN_LOOK
    if state == OTTLA_RUN_FULL:
        return _RUN_FULL
    if state == OTTLA_MEMORY:
        raise MemoryError
    if state == OTTLA_BAD_BATCH:
        header = _header_at(<const uint8_t *>view.buf, view.len, position)
        computed = _crc(<const uint8_t *>view.buf + position + CRC_FROM, header.size_bytes - CRC_FROM)
        raise errors.wrong_crc(position, header.crc, computed)
    raise errors.record_fault(state, index)


cdef void _batch_of(BatchHeader header, ottla_batch *batch) noexcept:
    batch.base_offset = header.base_offset
    batch.last_offset = header.base_offset + header.last_offset_delta
    batch.base_timestamp = header.base_timestamp
    batch.max_timestamp = header.max_timestamp
    batch.producer_id = header.producer_id
    batch.size = <size_t>header.size_bytes
    batch.last_offset_delta = header.last_offset_delta
    batch.count = header.record_count
    batch.attributes = header.attributes


cdef class OffsetMap:
    """The last offset of each key that was added, for at most `key_limit` keys; 24 bytes for each slot.

    `latest_offset` is how far the log was read. `seed` (16 bytes) keys the hash.
    """

    cdef ottla_offset_map _map

    def __cinit__(self, int64_t slot_count, int64_t key_limit, bytes seed not None):
        if not 0 < key_limit < slot_count:
            raise ValueError(f"more slots than keys and at least one key expected, {slot_count} and {key_limit} came")
        if len(seed) != 16:
            raise ValueError(f"a seed of 16 bytes expected, {len(seed)} came")
        if not ottla_map_allocate(&self._map, slot_count):
            raise MemoryError
        self._map.slot_count = slot_count
        self._map.key_limit = key_limit
        self._map.key_count = 0
        self._map.seed[0] = ottla_get64(<const uint8_t *>PyBytes_AS_STRING(seed))
        self._map.seed[1] = ottla_get64(<const uint8_t *>PyBytes_AS_STRING(seed) + 8)
        self._map.latest_offset = -1

    def __dealloc__(self):
        ottla_map_free(&self._map)

    def __len__(self):
        return self._map.key_count

    @property
    def latest_offset(self):
        return self._map.latest_offset

    def get(self, bytes key not None):
        """The last offset of a key, -1 when it is unknown."""
        return ottla_map_get(&self._map, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    def pass_over(self, int64_t last_offset):
        """Note that the log was read up to here, whatever was there."""
        if last_offset > self._map.latest_offset:
            self._map.latest_offset = last_offset

    def add_batches(self, buffer, Py_ssize_t position, int64_t start_offset):
        """Add the keys at `start_offset` and above, from the batch at `position` on; gives where and why it ended.

        END: no whole batch is left. LOOK: that batch is compressed or of a transaction. FULL: no key fits any more.
        """
        cdef Py_buffer view
        cdef size_t at
        cdef int64_t index = 0
        cdef int state
        _need(position)
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            at = min(position, view.len)
            with nogil:
                state = ottla_map_batches(&self._map, <const uint8_t *>view.buf, view.len, &at, start_offset, &index)
            return <Py_ssize_t>at, _run_end(state, &view, at, index)
        finally:
            PyBuffer_Release(&view)

    def add_payload(self, payload, BatchHeader header not None, int64_t start_offset):
        """Add the keys of one decompressed payload; False when the map is full."""
        cdef Py_buffer view
        cdef ottla_batch batch
        cdef int64_t index = 0
        cdef int state
        _batch_of(header, &batch)
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                state = ottla_map_payload(&self._map, &batch, <const uint8_t *>view.buf, view.len, start_offset,
                                          &index)
            if state == OTTLA_OK:
                return True
            _run_end(state, &view, 0, index)
            return False
        finally:
            PyBuffer_Release(&view)


cdef class BatchFilter:
    """What stays of batches: the last record of each key, tombstones until their horizon, everything the map has not
    seen. Batches that lost all records stay as empty ones where they hold a producer's last sequence
    (`kept_offsets`, rising 64-bit numbers of this machine) or end at `end_offset`.
    """

    cdef ottla_filter _filter
    cdef OffsetMap _owner
    cdef bytes _kept

    def __cinit__(self, OffsetMap offset_map not None, int64_t now_ms, int64_t horizon_ms, int64_t end_offset,
                  bytes kept_offsets not None):
        memset(&self._filter, 0, sizeof(ottla_filter))
        self._owner = offset_map
        self._kept = kept_offsets
        self._filter.map = &offset_map._map
        self._filter.kept = <const int64_t *>PyBytes_AS_STRING(kept_offsets)
        self._filter.kept_count = PyBytes_GET_SIZE(kept_offsets) // sizeof(int64_t)
        self._filter.now_ms = now_ms
        self._filter.horizon_ms = horizon_ms
        self._filter.end_offset = end_offset

    def __dealloc__(self):
        free(self._filter.out)
        free(self._filter.stays)

    def filter_batches(self, buffer, Py_ssize_t position):
        """What stays from the batch at `position` on, where it ended, and why: END, or LOOK at a batch that is compressed
        or of a transaction."""
        cdef Py_buffer view
        cdef size_t at
        cdef int64_t index = 0
        cdef int state
        _need(position)
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            at = min(position, view.len)
            self._filter.out_size = 0
            with nogil:
                state = ottla_filter_batches(&self._filter, <const uint8_t *>view.buf, view.len, &at, &index)
            reason = _run_end(state, &view, at, index)
            return (PyBytes_FromStringAndSize(<const char *>self._filter.out, self._filter.out_size),
                    <Py_ssize_t>at, reason)
        finally:
            PyBuffer_Release(&view)

    def filter_payload(self, payload, BatchHeader header not None):
        """What stays of one decompressed payload, and the header fields that go with it; None when nothing changes."""
        cdef Py_buffer view
        cdef ottla_batch batch
        cdef int64_t index = 0
        cdef int state
        _batch_of(header, &batch)
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            self._filter.out_size = 0
            with nogil:
                state = ottla_filter_payload(&self._filter, &batch, <const uint8_t *>view.buf, view.len, &index)
            if state != OTTLA_OK:
                _run_end(state, &view, 0, index)
            if self._filter.stay_count == 0:
                return FilteredRecords(b"", 0, -1, header.max_timestamp, header.attributes)
            if self._filter.is_whole:
                return None
            return FilteredRecords(
                PyBytes_FromStringAndSize(<const char *>self._filter.out, self._filter.out_size),
                self._filter.stay_count, self._filter.base_timestamp, self._filter.max_timestamp,
                self._filter.attributes)
        finally:
            PyBuffer_Release(&view)

    def keeps_empty(self, BatchHeader header not None):
        """Whether the batch stays when all its records are gone."""
        return ottla_keeps_empty(&self._filter, header.base_offset + header.last_offset_delta, header.producer_id)
