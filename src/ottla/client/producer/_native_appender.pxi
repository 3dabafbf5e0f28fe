# The queues of the partitions, and the one call that is the whole way of a record into them.


cdef class PartitionCore:
    """The batches of one partition that were not taken yet: closed ones in their order, then the open one."""

    cdef readonly str topic
    cdef readonly int32_t number
    cdef public object closed
    cdef public RecordBuffer open
    cdef int64_t _usual_bytes

    def __init__(self, str topic not None, int32_t number):
        self.topic = topic
        self.number = number


cdef class TopicCore:
    """A topic whose partitions are known. `sticky` is where records without a key go; -1 until one was chosen.

    While it is not open, only those records are put in that came before: see `Appender.placing_thread`.
    """

    cdef readonly str name
    cdef public list partitions
    cdef public bint is_open
    cdef public int32_t sticky
    cdef public int64_t sticky_bytes

    def __init__(self, str name not None, list partitions not None):
        self.name = name
        self.partitions = partitions
        self.is_open = True
        self.sticky = -1


cdef class _Nothing:
    """To be awaited where there is nothing to wait for, again and again: nothing is made for it."""

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


cdef PySendResult _send_nothing(PyObject *one, PyObject *sent, PyObject **result) except PYGEN_ERROR:
    Py_INCREF(None)
    result[0] = <PyObject *>None
    return PYGEN_RETURN


ottla_answers_await(_Nothing, _send_nothing)

cdef _Nothing _NOTHING = _Nothing()


cdef class Appender:
    """Where records are put in. `append` and the properties are for any thread; the rest is the loop's.

    What it is handed, all of it called with the GIL and without any other lock:
    - `make_batch(queue)` gives an empty batch, `choose(topic)` sets the topic's sticky partition;
    - `unknown(arguments of append)` takes records whose partition is not known yet;
    - `full(size_bytes)` returns when there may be room again, or raises;
    - `pause()` gives what to await when `pause_at` bytes were appended;
    - `refuse()` raises, while `refuses` is set; `wake()` makes the loop look; `seal(batch)` compresses a closed batch;
    - `rouse()`, where there is one, says that somebody waits for a record from now on;
    - `later(work)`, while there is one, has the loop do what must be done in its own thread;
    - `failures`, where there are any, counts the failed records that nobody looked at.

    `placing_thread` is the thread that puts in records which were taken before, while it does: that a topic is not
    open, or that no others are taken by now, does not concern those.
    """

    cdef readonly dict topics
    cdef readonly dict active
    cdef readonly dict incomplete
    cdef public object make_batch, choose, unknown, full, refuse, wake, seal, pause, clock, rouse, later, failures
    cdef public int64_t pause_at
    cdef public bint refuses, ignores_keys, is_timer_set, is_hungry, is_waking, seals_early
    cdef public int64_t available_bytes
    cdef readonly int64_t batch_bytes, record_limit_bytes
    cdef public int32_t waiting, give_way_at
    cdef public int64_t appended_records, appended_bytes
    cdef public unsigned long owner_thread, placing_thread
    cdef object _last_name
    cdef TopicCore _last
    cdef PyThread_type_lock _lock
    cdef bint _gives_way
    cdef bint _gave_in_vain

    def __cinit__(self, int64_t buffer_bytes, int64_t batch_bytes, int64_t record_limit_bytes):
        self.topics = {}
        self.active = {}
        self.incomplete = {}
        self.available_bytes = buffer_bytes
        self.batch_bytes = max(batch_bytes, 1)
        self.record_limit_bytes = record_limit_bytes
        self.is_hungry = True
        self.give_way_at = 8
        self._lock = PyThread_allocate_lock()
        if self._lock == NULL:
            raise MemoryError()
        PyThread_acquire_lock_timed(self._lock, -1, 0)

    def __dealloc__(self):
        if self._lock != NULL:
            PyThread_release_lock(self._lock)
            PyThread_free_lock(self._lock)

    def set_topic(self, TopicCore topic not None):
        """From now on its records find their way; also when its partitions became more."""
        self.topics[topic.name] = topic
        self._last_name = None

    def drop_topic(self, str name):
        self._last_name = None
        self.topics.pop(name, None)

    def own(self):
        """This thread is the loop's: it never gives way to itself."""
        self.owner_thread = PyThread_get_thread_ident()

    cdef inline int64_t _now_ms(self) except? -1:
        cdef timespec now
        if self.clock is not None:
            return self.clock.now_ms()
        timespec_get(&now, TIME_UTC)
        return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1000000

    cdef TopicCore _topic(self, object name):
        """The topic, or None where it is not known; the last one is remembered by its very object."""
        cdef PyObject *found
        if name is self._last_name:
            return self._last
        found = PyDict_GetItem(self.topics, name)
        if found == NULL:
            return None
        self._last = <TopicCore>found
        self._last_name = name
        return self._last

    def append(self, topic, value=None, key=None, headers=None, timestamp=None, partition=None, on_delivery=None):
        """Put a record into the batch of its partition; gives its `Delivery`."""
        cdef TopicCore known
        cdef PartitionCore queue
        cdef RecordBuffer batch, full_one = None
        cdef Delivery delivery
        cdef list pairs = None
        cdef int64_t stamp, body, whole, wanted = 0
        cdef int32_t number, count
        cdef bint is_sticky = False, was_opened = False
        if self.refuses and PyThread_get_thread_ident() != self.placing_thread:
            self.refuse()
        known = self._topic(topic)
        if known is None or (not known.is_open and PyThread_get_thread_ident() != self.placing_thread):
            return self.unknown(topic, value, key, headers, timestamp, partition, on_delivery)
        count = <int32_t>PyList_GET_SIZE(known.partitions)
        if partition is not None:
            wanted = _number(partition, "partition")
            if wanted >= count:
                return self.unknown(topic, value, key, headers, timestamp, partition, on_delivery)
        if type(value) is not bytes and value is not None:
            value = _as_bytes(value, "value")
        if type(key) is not bytes and key is not None:
            key = _as_bytes(key, "key")
        if headers:
            pairs = _header_pairs(headers)
        stamp = self._now_ms() if timestamp is None else _stamp(timestamp)
        if partition is not None:
            if wanted < 0:
                raise faults.negative_partition(wanted)
            number = <int32_t>wanted
        elif key is not None and not self.ignores_keys:
            number = _partition_of(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), count)
        else:
            is_sticky = True
            number = known.sticky
            if number < 0 or number >= count:
                self.choose(known)
                number = known.sticky
        queue = <PartitionCore>PyList_GET_ITEM(known.partitions, number)
        whole = 16 + _bytes_size(key) + _bytes_size(value) + _pairs_size(pairs)
        if HEADER + whole > self.record_limit_bytes:
            raise faults.record_too_large(HEADER + whole, self.record_limit_bytes)
        while whole > self.available_bytes:
            self.full(whole)
        delivery = Delivery.__new__(Delivery)
        batch = queue.open
        if batch is None or (batch.record_count and HEADER + batch._size + whole > self.batch_bytes):
            fresh = self.make_batch(queue)
            # Other threads may have come in between: what was seen of the queue is looked at again.
            batch = queue.open
            if batch is not None and batch.record_count and HEADER + batch._size + whole > self.batch_bytes:
                full_one = self._close(queue)
                batch = None
            if batch is None:
                batch = <RecordBuffer?>fresh
                # As large as the last one was: memory that grows bit by bit is copied each time.
                batch._reserve(min(queue._usual_bytes, self.batch_bytes), self.batch_bytes)
                queue.open = batch
                was_opened = True
                PyDict_SetItem(self.incomplete, batch, None)
                PyDict_SetItem(self.active, queue, None)
        body = batch._body(stamp, key, value, pairs)
        batch._write(stamp, key, value, pairs, body, self.batch_bytes)
        whole = body + ottla_varint_size(body)
        self.available_bytes -= whole
        self.appended_records += 1
        self.appended_bytes += whole
        delivery._batch = batch
        delivery._index = batch.record_count - 1
        delivery.timestamp = stamp
        if on_delivery is not None:
            delivery.callback = on_delivery
            if batch.deliveries is None:
                batch.deliveries = []
            PyList_Append(batch.deliveries, delivery)
        if HEADER + batch._size >= self.batch_bytes:
            full_one = self._close(queue)
        if is_sticky:
            known.sticky_bytes += whole
            if known.sticky_bytes >= self.batch_bytes and (
                full_one is not None or known.sticky_bytes >= 2 * self.batch_bytes
            ):
                known.sticky = -1
                known.sticky_bytes = 0
        if full_one is not None or (was_opened and not self.is_timer_set):
            self._announce(full_one)
        return delivery

    cdef RecordBuffer _close(self, PartitionCore queue):
        cdef RecordBuffer batch = queue.open
        queue._usual_bytes = batch._size
        queue.closed.append(batch)
        queue.open = None
        self.waiting += 1
        return batch

    cdef int _announce(self, RecordBuffer full_one) except -1:
        """Tell the loop that there is something to do, and let it do so if it falls behind.

        Compressing releases the GIL, so the caller's thread does it while the loop goes on sending.
        """
        cdef bint is_owner = PyThread_get_thread_ident() == self.owner_thread
        if full_one is not None and self.seals_early and not is_owner:
            self.seal(full_one)
        if not self.is_waking and (self.is_hungry or full_one is None):
            self.is_waking = True
            self.wake()
        if full_one is not None and not is_owner and self.waiting >= self.give_way_at:
            self._give_way()
        return 0

    cdef int _give_way(self) except -1:
        """Wait, without the GIL, until the loop has had its turn; not again while that brings nothing."""
        cdef PyLockStatus status
        if self._gives_way or self._gave_in_vain:
            return 0
        self._gives_way = True
        with nogil:
            status = PyThread_acquire_lock_timed(self._lock, GIVE_WAY_MICROSECONDS, 0)
        if status == PY_LOCK_ACQUIRED:
            return 0
        if self._gives_way:
            self._gives_way = False
            self._gave_in_vain = True
        else:
            # The turn ended just now. Take what it left for this thread, unless another one was faster.
            PyThread_acquire_lock_timed(self._lock, 0, 0)
        return 0

    def turn_ends(self, bint made_progress):
        """The loop has sent what it could: whoever gave way goes on."""
        if made_progress:
            self._gave_in_vain = False
        if self._gives_way and (made_progress or self.waiting < self.give_way_at):
            self._gives_way = False
            PyThread_release_lock(self._lock)

    def drain(self):
        """What a coroutine awaits between records: nothing, or a pause when it is time for one."""
        if self.appended_bytes < self.pause_at:
            return _NOTHING
        return self.pause()

    # The loop's part.

    def add_closed(self, PartitionCore queue not None, RecordBuffer batch not None, int64_t size_bytes):
        """Put in a batch that is closed already, after everything that is there."""
        if queue.open is not None:
            self._close(queue)
        queue.closed.append(batch)
        self.waiting += 1
        self.available_bytes -= size_bytes
        self.appended_records += batch.record_count
        self.appended_bytes += size_bytes
        PyDict_SetItem(self.incomplete, batch, None)
        PyDict_SetItem(self.active, queue, None)

    def put_back(self, PartitionCore queue not None, RecordBuffer batch not None, Py_ssize_t position):
        """Put a batch that was taken at `position` of the closed ones again."""
        queue.closed.insert(position, batch)
        self.waiting += 1
        PyDict_SetItem(self.incomplete, batch, None)
        PyDict_SetItem(self.active, queue, None)

    def close_open(self, PartitionCore queue not None):
        """Close the open batch, if there is one."""
        if queue.open is not None:
            self._close(queue)

    def take(self, PartitionCore queue not None):
        """The first batch of a queue, closed now if it was open; None when there is none."""
        if not queue.closed:
            if queue.open is None:
                return None
            self._close(queue)
        self.waiting -= 1
        return queue.closed.popleft()

    def retire(self, PartitionCore queue not None):
        """Forget a queue that has become empty; whether it had."""
        if queue.closed or queue.open is not None:
            return False
        if queue in self.active:
            PyDict_DelItem(self.active, queue)
        return True

    def complete(self, RecordBuffer batch not None, int64_t size_bytes):
        """A batch is done with: its memory is free again."""
        if batch in self.incomplete:
            PyDict_DelItem(self.incomplete, batch)
            self.available_bytes += size_bytes
