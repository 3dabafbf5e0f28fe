"""Records that came before the partitions of their topic were known: kept in order until they are, or for too long.

`add` may be called from any thread; one lock keeps it apart from the loop, which puts the records where they belong.

What must stay true:
- A topic that the appender knows is not open while records wait here that could be put in: all others come behind them.
  So its partitions become more only with the lock held, in the same moment in which it is closed for what waits.
- A topic is watched once while records of it wait. Then one that exists is left to `IdleTopics`, without a moment in
  which nobody watches it: the leaders of records that were put in but not sent would be forgotten.
- After `give_up_all` of a producer that is closed nothing is added: nobody would end it.
- A record that was taken does not fail because others took its room in the moment in which it is put in: it waits on.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ottla.client.cluster import Cluster, TopicInfo
from ottla.client.errors import BrokerUnavailable, BufferFull, OttlaError, error_of
from ottla.client.network import Network
from ottla.client.producer import faults
from ottla.client.producer._pure_records import as_bytes, header_pairs, most_bytes
from ottla.client.producer._twin import twin
from ottla.client.producer.arguments import number, stamp
from ottla.client.producer.idle_topics import IdleTopics
from ottla.client.producer.interceptors import is_watched
from ottla.client.producer.partitions import TopicQueues
from ottla.client.producer.waiting import Delivery, WaitingRecords, call
from ottla.protocol.errors import ErrorCode
from ottla.records import HEADER_BYTES

# What is kept of a record besides its bytes: the arguments and a place in a list.
_OVERHEAD_BYTES = 200
# How often the cluster is asked whether a partition that records name was added.
_ASK_AGAIN_SECONDS = 0.5
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FINAL = {ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def check_topic(name: object) -> None:
    """Refuse what cannot be the name of a topic."""
    if not isinstance(name, str) or not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise error_of(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name!r} is no name of a topic: 1 to 249 letters, digits, dots, dashes and underscores expected",
        )


def as_kept(arguments: tuple[Any, ...], now_ms: int) -> tuple[tuple[Any, ...], int]:
    """The arguments of `append` as they can be kept, and the most that the record takes.

    What is wrong is said now, and what the caller changes from here on does not matter, as if the topic were known.
    """
    topic, value, key, headers, timestamp, partition, on_delivery = arguments
    value, key = as_bytes(value, "value"), as_bytes(key, "key")
    pairs = header_pairs(headers) if headers else []
    timestamp = now_ms if timestamp is None else stamp(timestamp)
    if partition is not None and not callable(partition):
        partition = number(partition, "partition")
        if partition < 0:
            raise faults.negative_partition(partition)
    headers = [(name.decode(), header) for name, header in pairs]
    return (topic, value, key, headers, timestamp, partition, on_delivery), most_bytes(key, value, pairs)


def placed(arguments: tuple[Any, ...], appender: "twin.Appender") -> tuple[Any, ...]:
    """The arguments of `append` with a partition in place of a user's partitioner, which had to wait for its topic."""
    partition = arguments[5]
    if not callable(partition):
        return arguments
    count = len(appender.topics[arguments[0]].partitions)
    return (*arguments[:5], partition(arguments[0], arguments[2], count), arguments[6])


class _Record(NamedTuple):
    arguments: tuple[Any, ...]
    place: int
    deadline: float
    size_bytes: int

    def is_for_none_of(self, queues: TopicQueues) -> bool:
        """Whether it names a partition that is not there."""
        partition = self.arguments[5]
        return partition is not None and not callable(partition) and partition >= len(queues.partitions)


class _Topic(WaitingRecords):
    """The records of one topic, by their deadlines; `moved` has for each the place that it came to, or None."""

    __slots__ = ("records",)

    def __init__(self, owner: "twin.Appender") -> None:
        super().__init__(owner)
        self.moved = []
        self.records: list[_Record] = []


class UnknownTopics:
    def __init__(
        self, appender: "twin.Appender", network: Network, idle_topics: IdleTopics, max_block_seconds: float
    ) -> None:
        self._appender = appender
        self._network = network
        self._idle_topics = idle_topics
        self._max_block_seconds = max_block_seconds
        self._lock = threading.RLock()
        self._is_settling = False
        self._topics: dict[str, _Topic] = {}
        self._watched: set[str] = set()
        self._lacks_room = False
        self._lacks_partitions = False
        self._ask_at = float("-inf")

    @property
    def has_work(self) -> bool:
        """Whether there is something to `look` at."""
        return bool(self._topics or self._watched)

    @property
    def can_go_on(self) -> bool:
        """Whether others had taken room that is free again: then it is time to `look`."""
        return self._lacks_room and self._appender.available_bytes >= 0

    @property
    def names(self) -> list[str]:
        return sorted(self._topics)

    @property
    def record_count(self) -> int:
        return sum(len(topic.records) for topic in self._topics.values())

    def __len__(self) -> int:
        return len(self._topics)

    def add(self, arguments: tuple[Any, ...], now: float, now_ms: int) -> Delivery:
        """Keep a record; append it where its partition became known in between."""
        self._check_open()
        check_topic(arguments[0])
        arguments, record_bytes = as_kept(arguments, now_ms)
        limit_bytes = self._appender.record_limit_bytes
        if HEADER_BYTES + record_bytes > limit_bytes:
            raise faults.record_too_large(HEADER_BYTES + record_bytes, limit_bytes)
        # Never less than the record takes when it is appended, and never more than there may be room for.
        size_bytes = min(_OVERHEAD_BYTES + record_bytes, limit_bytes)
        deadline = now + self._max_block_seconds
        while True:
            while size_bytes > self._appender.available_bytes:
                self._appender.full(size_bytes)
            with self._lock:
                # What was seen without the lock may be over: the producer may be closed, and the room taken.
                self._check_open()
                if self._is_known(arguments):
                    break
                if size_bytes <= self._appender.available_bytes:
                    return self._keep(arguments, deadline, size_bytes)
        return self._appender.append(*placed(arguments, self._appender))

    def _check_open(self) -> None:
        if self._appender.refuses:
            self._appender.refuse()

    def _keep(self, arguments: tuple[Any, ...], deadline: float, size_bytes: int) -> Delivery:
        topic = self._topics.get(arguments[0])
        if topic is None:
            topic = self._topics[arguments[0]] = _Topic(self._appender)
        assert topic.moved is not None
        self._appender.available_bytes -= size_bytes
        place = len(topic.moved)
        if topic.records:
            # Whoever waited for room, or for the lock, began earlier than others that are here already.
            deadline = max(deadline, topic.records[-1].deadline)
        topic.records.append(_Record(arguments, place, deadline, size_bytes))
        topic.moved.append(None)
        return Delivery(topic, place, arguments[4])

    def _is_known(self, arguments: tuple[Any, ...]) -> bool:
        known = self._appender.topics.get(arguments[0])
        partition = arguments[5]
        if known is None or not known.is_open:
            return False
        return partition is None or callable(partition) or partition < len(known.partitions)

    def look(self, now: float) -> float | None:
        """Watch what waits, and `place` what is known by now; when to look again."""
        self._watch(now)
        return self.place(now)

    def _watch(self, now: float) -> None:
        waiting = set(self._topics)
        new, gone = waiting - self._watched, self._watched - waiting
        # Before the network is told: that may make it tell the producer, which looks again.
        self._watched = waiting
        if new:
            self._network.watch_topics(sorted(new))
        if gone:
            for name in gone:
                if name in self._appender.topics or name in self._network.cluster.topics:
                    self._idle_topics.used(name, now)
            self._network.unwatch_topics(sorted(gone))

    def place(self, now: float) -> float | None:
        """Put in what is known by now, give up what cannot be; when to look again."""
        look_at = None
        cluster = self._network.cluster
        with self._settling() as names:
            if names:
                self._lacks_room = self._lacks_partitions = False
            for name in names:
                topic = self._topics[name]
                info, code = cluster.topics.get(name), self._network.topic_error(name)
                if info is not None and info.partitions:
                    self._append(topic, info, cluster, now)
                elif code in _FINAL:
                    self._give_up(topic, error_of(code, f"topic {name}: {ErrorCode(code).name}"))
                else:
                    self._expire(topic, name, code, now)
                if not topic.records:
                    self._end(name)
                else:
                    first = topic.records[0].deadline
                    look_at = first if look_at is None else min(first, look_at)
        if look_at is None or not self._lacks_partitions:
            return look_at
        return min(look_at, self._ask_again(now))

    @contextmanager
    def _settling(self) -> Iterator[list[str]]:
        """The names of what waits, for whoever may end it. None for a callback in the middle of that, which may send
        what makes it look again."""
        with self._lock:
            if self._is_settling:
                yield []
                return
            self._is_settling = True
            try:
                yield self.names
            finally:
                self._is_settling = False

    def _ask_again(self, now: float) -> float:
        """Of a topic that is known nothing new comes by itself for long; when to ask the next time."""
        if now >= self._ask_at:
            self._ask_at = now + _ASK_AGAIN_SECONDS
            self._network.request_update()
        return self._ask_at

    def meet(self, info: TopicInfo, cluster: Cluster) -> TopicQueues:
        """The queues of a topic that is known. They are not open while records wait that go in before all others."""
        with self._lock:
            queues: TopicQueues | None = self._appender.topics.get(info.name)
            if queues is None:
                queues = TopicQueues(info.name, info.topic_id)
            if len(queues.partitions) < len(info.partitions) and info.name in self._topics:
                queues.is_open = False
            queues.update(info, cluster)
            self._appender.set_topic(queues)
            return queues

    def grow(self, cluster: Cluster) -> None:
        """Partitions became more: `look` puts in what waits for them, and until then others wait behind that."""
        for name, queues in list(self._appender.topics.items()):
            info = cluster.topics.get(name)
            if info is not None and len(info.partitions) > len(queues.partitions):
                self.meet(info, cluster)

    def _append(self, topic: _Topic, info: TopicInfo, cluster: Cluster, now: float) -> None:
        """Put the records in. Everybody else's come after them: to those the topic is not open before, and `add` wants
        the lock."""
        queues = self.meet(info, cluster)
        self._place_records(topic, queues, now)
        missing = [record.is_for_none_of(queues) for record in topic.records]
        self._lacks_partitions |= any(missing)
        queues.is_open = all(missing)
        topic.tell_listeners()

    def _place_records(self, topic: _Topic, queues: TopicQueues, now: float) -> None:
        """Those that cannot be placed wait on: for their partition, or for room, with all that are behind them."""
        records, topic.records = topic.records, []
        kept: list[_Record] = []
        for position, record in enumerate(records):
            if record.is_for_none_of(queues):
                if record.deadline > now:
                    kept.append(record)
                else:
                    self._fail(topic, [record], _no_such_partition(queues, record.arguments[5]))
                continue
            try:
                self._place_one(topic, record)
            except BufferFull as error:
                if record.deadline > now:
                    self._lacks_room = True
                    kept += records[position:]
                    break
                self._fail(topic, [record], error)
            except OttlaError as error:
                self._fail(topic, [record], error)
            except Exception as error:
                self._fail(topic, [record], OttlaError(f"the partitioner failed: {error!r}"))
        # A callback may have sent more meanwhile.
        topic.records[:0] = kept

    def _place_one(self, topic: _Topic, record: _Record) -> None:
        appender = self._appender
        arguments = placed(record.arguments, appender)
        assert topic.moved is not None
        appender.placing_thread = threading.get_ident()
        appender.available_bytes += record.size_bytes
        try:
            delivery = appender.append(*arguments)
        except Exception:
            appender.available_bytes -= record.size_bytes
            raise
        finally:
            appender.placing_thread = 0
        topic.moved[record.place] = (delivery.batch, delivery.index)

    def _fail_one(self, topic: _Topic, record: _Record, error: OttlaError, is_awaited: bool) -> None:
        failed = WaitingRecords(self._appender)
        failed.error = error
        failures = self._appender.failures
        if failures is not None and not is_awaited and not is_watched(record.arguments[6]):
            failed.unseen = failures.add(1, error)
        failed.is_done = True
        assert topic.moved is not None
        topic.moved[record.place] = (failed, 0)
        on_delivery = record.arguments[6]
        if on_delivery is not None:
            call(on_delivery, None, error)

    def _expire(self, topic: _Topic, name: str, code: int, now: float) -> None:
        if topic.records[0].deadline > now:
            return
        expired = [record for record in topic.records if record.deadline <= now]
        del topic.records[: len(expired)]
        seconds = self._max_block_seconds
        error: OttlaError
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            error = error_of(code, f"topic {name} does not exist, {seconds:g} s after it was asked for: create it")
        elif code:
            error = error_of(code, f"topic {name}: {ErrorCode(code).name} for {seconds:g} s")
        else:
            error = BrokerUnavailable(
                f"nothing was learned of topic {name} within {seconds:g} s (max.block.ms): are the brokers reachable?"
            )
        self._fail(topic, expired, error)
        topic.tell_listeners()

    def _fail(self, topic: _Topic, records: list[_Record], error: OttlaError) -> None:
        awaited = {delivery.index for delivery, _ in list(topic.listeners) if delivery.batch is topic}
        for record in records:
            self._appender.available_bytes += record.size_bytes
            self._fail_one(topic, record, error, record.place in awaited)

    def _give_up(self, topic: _Topic, error: OttlaError) -> None:
        records, topic.records = topic.records, []
        self._fail(topic, records, error)
        topic.tell_listeners()

    def give_up_all(self, error: OttlaError) -> None:
        with self._settling() as names:
            self._lacks_room = False
            for name in names:
                self._give_up(self._end(name), error)

    def _end(self, name: str) -> _Topic:
        """Nothing of it waits here any more."""
        queues = self._appender.topics.get(name)
        if queues is not None:
            queues.is_open = True
        return self._topics.pop(name)


def _no_such_partition(queues: TopicQueues, partition: int) -> OttlaError:
    return error_of(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {queues.name} has partitions 0 to {len(queues.partitions) - 1}, not {partition}: add some, "
        "or choose one",
    )
