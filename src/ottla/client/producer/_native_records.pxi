# The records of one batch as they grow, the delivery of one record, and the hash that picks its partition.


cdef uint32_t _murmur2(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    """MurmurHash2 as Kafka's clients have it, with their seed."""
    cdef uint32_t scale = 0x5BD1E995
    cdef uint32_t hashed = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t word
    cdef const uint8_t *end = data + (size & ~<Py_ssize_t>3)
    while data < end:
        word = (<uint32_t>data[0]) | (<uint32_t>data[1]) << 8 | (<uint32_t>data[2]) << 16 | (<uint32_t>data[3]) << 24
        word *= scale
        word ^= word >> 24
        word *= scale
        hashed *= scale
        hashed ^= word
        data += 4
    size &= 3
    if size:
        if size == 3:
            hashed ^= (<uint32_t>data[2]) << 16
        if size >= 2:
            hashed ^= (<uint32_t>data[1]) << 8
        hashed ^= data[0]
        hashed *= scale
    hashed ^= hashed >> 13
    hashed *= scale
    hashed ^= hashed >> 15
    return hashed


cdef inline int32_t _partition_of(const uint8_t *key, Py_ssize_t size, int32_t count) noexcept nogil:
    return <int32_t>(_murmur2(key, size) & 0x7FFFFFFF) % count


def murmur2(data):
    """The hash of a key, as an unsigned number."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return _murmur2(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef object _as_bytes(object data, str what):
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, (str, int, float, dict, list, tuple)):
        raise faults.not_bytes(what, data)
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise faults.not_bytes(what, data) from None


cdef int64_t _number(object value, str what) except? -1:
    """Floats are no numbers here: C would cut off what is behind the point."""
    if type(value) is not int:
        value = number(value, what)
    try:
        return value
    except OverflowError:
        raise faults.not_a_number(what, value) from None


cdef int64_t _stamp(object value) except? -1:
    return _number(value if type(value) is int else stamp(value), "timestamp")


cdef inline int64_t _bytes_size(object data):
    cdef int64_t size
    if data is None:
        return 1
    size = PyBytes_GET_SIZE(data)
    return size + ottla_varint_size(size)


cdef inline uint8_t *_put_bytes(uint8_t *at, object data):
    cdef Py_ssize_t size
    if data is None:
        return ottla_put_varint(at, -1)
    size = PyBytes_GET_SIZE(data)
    at = ottla_put_varint(at, size)
    memcpy(at, PyBytes_AS_STRING(data), size)
    return at + size


cdef list _header_pairs(object headers):
    """Names and values as bytes, in a list of their own; nothing here is looked at again before it is written."""
    cdef list pairs = []
    if isinstance(headers, dict):
        headers = headers.items()
    try:
        for name, value in headers:
            if not isinstance(name, str):
                raise faults.header_name(name)
            pairs.append((name.encode(), _as_bytes(value, "header")))
    except (ValueError, TypeError):
        raise faults.header_shape(headers) from None
    return pairs


cdef class RecordBuffer:
    """The records of one batch, encoded one after the other; a buffer of bytes to whoever looks at it.

    It may be looked at as a buffer only once nothing is appended to it any more: while somebody looks, `append` raises
    BufferError. Whoever looks may do so without the GIL and for long (compressors do), also when the records are given
    up meanwhile: `release` leaves the memory to the last of them.
    """

    cdef uint8_t *_data
    cdef Py_ssize_t _size
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _views
    cdef bint _is_released
    cdef readonly int32_t record_count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    # What the appender and the deliveries read without asking Python.
    cdef public bint is_done
    cdef public list moved
    cdef public list deliveries
    # Topic, partition, first offset and append time of records that were written as they are; None otherwise.
    cdef public tuple written

    def __cinit__(self, *args, **kwargs):
        self.base_timestamp = -1
        self.max_timestamp = -1

    def __dealloc__(self):
        _let_go(self._data, self._capacity)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self._data if self._data != NULL else <uint8_t *>b"", self._size, 1, flags)
        self._views += 1

    def __releasebuffer__(self, Py_buffer *view):
        self._views -= 1
        if self._is_released and not self._views:
            self._free()

    @property
    def payload_bytes(self):
        """The size of the records so far."""
        return self._size

    def view(self):
        """The records, as a buffer."""
        return memoryview(self)

    def release(self):
        """Give the memory back, as soon as nobody looks at it: everything that was to be sent was sent."""
        self._size = 0
        self._is_released = True
        if not self._views:
            self._free()

    cdef void _free(self) noexcept:
        _let_go(self._data, self._capacity)
        self._data = NULL
        self._capacity = 0
        self._is_released = False

    def append(self, int64_t timestamp, key, value, headers=None):
        """Add one record; gives its index."""
        cdef list pairs = _header_pairs(headers) if headers else None
        cdef int64_t body
        key = _as_bytes(key, "key")
        value = _as_bytes(value, "value")
        body = self._body(timestamp, key, value, pairs)
        self._write(timestamp, key, value, pairs, body)
        return self.record_count - 1

    cdef int64_t _body(self, int64_t timestamp, object key, object value, list pairs) except -1:
        cdef int64_t delta = 0, body
        if self.record_count and not ottla_subtract64(timestamp, self.base_timestamp, &delta):
            raise faults.timestamp_distance(self.base_timestamp, timestamp)
        body = 1 + ottla_varint_size(delta) + ottla_varint_size(self.record_count)
        return body + _bytes_size(key) + _bytes_size(value) + _pairs_size(pairs)

    cdef int _reserve(self, int64_t more, Py_ssize_t limit) except -1:
        """Room for that many bytes: doubled, but not beyond the size of a batch unless one record is."""
        cdef Py_ssize_t capacity
        cdef ottla_block block
        if self._size + more <= self._capacity:
            return 0
        capacity = max(self._capacity * 2, 2048)
        if capacity > limit:
            capacity = limit
        if capacity < self._size + more:
            capacity = self._size + more
        block.data = self._data
        block.size = self._size
        block.capacity = self._capacity
        _reserve(&block, capacity)
        self._data = block.data
        self._capacity = block.capacity
        return 0

    cdef int _write(self, int64_t timestamp, object key, object value, list pairs, int64_t body,
                    Py_ssize_t limit=INT32_MAX) except -1:
        """No Python code runs in here."""
        cdef int64_t delta
        cdef uint8_t *at
        if self._views:
            raise BufferError("records cannot be added while somebody looks at those that are there")
        self._reserve(body + ottla_varint_size(body), limit)
        if not self.record_count:
            self.base_timestamp = timestamp
            self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        delta = timestamp - self.base_timestamp
        at = ottla_put_varint(self._data + self._size, body)
        at[0] = 0
        at = ottla_put_varint(at + 1, delta)
        at = ottla_put_varint(at, self.record_count)
        at = _put_bytes(at, key)
        at = _put_bytes(at, value)
        at = _put_pairs(at, pairs)
        self._size = at - self._data
        self.record_count += 1
        return 0


cdef int64_t _pairs_size(list pairs):
    cdef int64_t size
    if pairs is None:
        return 1
    size = ottla_varint_size(len(pairs))
    for name, value in pairs:
        size += _bytes_size(name) + _bytes_size(value)
    return size


cdef uint8_t *_put_pairs(uint8_t *at, list pairs):
    cdef Py_ssize_t index
    cdef tuple pair
    if pairs is None:
        at[0] = 0
        return at + 1
    at = ottla_put_varint(at, PyList_GET_SIZE(pairs))
    for index in range(PyList_GET_SIZE(pairs)):
        pair = <tuple>PyList_GET_ITEM(pairs, index)
        at = _put_bytes(at, <object>pair[0])
        at = _put_bytes(at, <object>pair[1])
    return at


@cython.no_gc
@cython.freelist(1024)
cdef class Delivery:
    """What becomes of one record: `result()` waits for it in a thread, `await` in a coroutine.

    It is no more than a batch and an index. `timestamp` is the record's own.
    """

    cdef object _batch
    cdef int32_t _index
    cdef readonly int64_t timestamp
    cdef readonly object callback

    def __init__(self, batch, int32_t index, int64_t timestamp=-1):
        self._batch = batch
        self._index = index
        self.timestamp = timestamp

    cdef RecordBuffer _find(self):
        """The batch that the record is in now: a batch may have been split, or made once its topic was known."""
        cdef RecordBuffer batch = <RecordBuffer>self._batch
        while batch.moved is not None:
            place = batch.moved[self._index]
            if place is None:
                return batch
            batch, self._index = place
            self._batch = batch
        return batch

    @property
    def batch(self):
        return self._find()

    @property
    def index(self):
        self._find()
        return self._index

    def done(self):
        """Whether it is known what became of it."""
        return self._find().is_done

    def result(self, timeout=None):
        """Where the record was written, once the broker said so; raises what kept it from being written.

        Not for the thread of the producer's own event loop: there, `await` it.
        """
        cdef RecordBuffer batch = self._find()
        if not batch.is_done:
            batch.wait(self, timeout)
            batch = self._find()
        if batch.written is not None:
            return self._metadata(batch.written)
        error = batch.look_at(self._index)
        if error is not None:
            raise error.with_traceback(None)
        return self.metadata()

    cdef object _metadata(self, tuple written):
        cdef int64_t offset = written[2]
        cdef int64_t append_time_ms = written[3]
        return ottla_tuple_of_four(
            RecordMetadata,
            written[0],
            written[1],
            -1 if offset < 0 else offset + self._index,
            self.timestamp if append_time_ms < 0 else append_time_ms,
        )

    def exception(self, timeout=None):
        """What kept the record from being written; None when it was."""
        batch = self._find()
        if not batch.is_done:
            batch.wait(self, timeout)
            batch = self._find()
        return batch.look_at(self._index)

    def metadata(self):
        """Where the record was written, of a delivery that is done and did not fail."""
        batch = self._find()
        return batch.metadata_at(self._index, self.timestamp)

    def add_done_callback(self, callback):
        """Call `callback(delivery)` in the producer's loop when it is done; now if it is."""
        self._find().add_listener(self, callback)

    def __await__(self):
        """One that is done needs no generator: it has its result at once (`_send_delivery`)."""
        if self._find().is_done:
            return self
        return self._wait()

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.result())

    def _wait(self):
        yield from self._find().future(self)
        return self.result()

    def settle(self):
        """Call what `send` was given as `on_delivery`."""
        callback = self.callback
        self.callback = None
        if callback is None:
            return
        batch = self._find()
        error = batch.error_at(self._index)
        if error is None:
            callback(batch.metadata_at(self._index, self.timestamp), None)
        else:
            callback(None, error)

    def __repr__(self):
        return f"Delivery(batch={self._batch!r}, index={self._index}, done={self.done()})"


cdef PySendResult _send_delivery(PyObject *one, PyObject *sent, PyObject **result) except PYGEN_ERROR:
    made = (<Delivery>one).result()
    Py_INCREF(made)
    result[0] = <PyObject *>made
    return PYGEN_RETURN


ottla_answers_await(Delivery, _send_delivery)


def settle_written(RecordBuffer batch, str topic, int32_t partition, int64_t base_offset, int64_t append_time_ms,
                   failed):
    """Call the callbacks of a batch that was written, in the order of its records.

    `base_offset` is -1 where the broker did not say. An exception of a callback goes to `failed(error)`.
    """
    cdef Delivery delivery
    cdef object callback
    cdef int64_t offset, timestamp
    for delivery in batch.deliveries:
        callback = delivery.callback
        delivery.callback = None
        if callback is None:
            continue
        offset = -1 if base_offset < 0 else base_offset + delivery._index
        timestamp = delivery.timestamp if append_time_ms < 0 else append_time_ms
        try:
            callback(ottla_tuple_of_four(RecordMetadata, topic, partition, offset, timestamp), None)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed(error)
