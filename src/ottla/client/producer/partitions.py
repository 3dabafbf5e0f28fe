"""The queues of a topic's partitions, and where records without a key go.

Without a key, records stick to one partition until a batch is full there, and go on with another: by chance, but less
often where more batches wait already (KIP-480, KIP-794).
"""

from collections import deque
from collections.abc import Callable

from ottla.client.cluster import NO_LEADER, Cluster, TopicInfo
from ottla.client.config import ProducerConfig
from ottla.client.producer._twin import twin
from ottla.client.producer.batches import Batch
from ottla.client.producer.sequences import PartitionSequences
from ottla.runtime import Clock, IdSource

Partitioner = Callable[[str, bytes | None, int], int]
"""A user's own way: topic, key as bytes, number of partitions -> partition."""


class PartitionQueue(twin.PartitionCore):
    """The batches of one partition, and what is known of it. `in_flight` counts requests without an answer."""

    __slots__ = ("in_flight", "is_in_transaction", "leader", "leader_epoch", "sequences")

    def __init__(self, topic: str, number: int) -> None:
        super().__init__(topic, number)
        self.closed: deque[Batch] = deque()
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.in_flight = 0
        self.is_in_transaction = False
        self.sequences = PartitionSequences()

    def __repr__(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def first(self) -> Batch | None:
        """The batch that is sent next; it may still be open."""
        closed = self.closed
        batch: Batch | None = closed[0] if closed else self.open
        return batch

    def put_again(self, appender: "twin.Appender", batch: Batch) -> None:
        """A batch that has to be sent again, in front of all that were not sent, in the order of sequences."""
        position = 0
        for other in self.closed:
            if other.sequence < 0 or batch.sequence < 0 or (other.sequence - batch.sequence) % 2**31 < 2**30:
                break
            position += 1
        appender.put_back(self, batch, position)


class TopicQueues(twin.TopicCore):
    """A topic whose partitions are known."""

    __slots__ = ("topic_id",)

    def __init__(self, name: str, topic_id: bytes) -> None:
        super().__init__(name, [])
        self.topic_id = topic_id

    def update(self, info: TopicInfo, cluster: Cluster) -> None:
        """Take over what is known by now. Partitions never become fewer, unless the topic is another one."""
        if info.topic_id != self.topic_id:
            for queue in self.partitions:
                queue.sequences.forget_broker()
        self.topic_id = info.topic_id
        while len(self.partitions) < len(info.partitions):
            self.partitions.append(PartitionQueue(self.name, len(self.partitions)))
        for queue in self.partitions:
            known = cluster.partition(self.name, queue.number)
            queue.leader = cluster.leader_of(self.name, queue.number)
            queue.leader_epoch = -1 if known is None else known.leader_epoch


class StickyChoice:
    """Chooses the next sticky partition of a topic: with `partitioner.availability.timeout.ms`, none whose broker
    has taken nothing for that long, unless that is so for all.

    It throws dice of its own, of which only the first throw is the machine's: asking that would let go of the GIL in
    the middle of `send`.
    """

    def __init__(self, ids: IdSource, config: ProducerConfig, clock: Clock) -> None:
        self._state = ids.below(2**31)
        self._is_adaptive = config.partitioner_adaptive_partitioning_enable
        self._clock = clock
        # A batch waits for others at first, which says nothing about its broker.
        patience_ms = config.partitioner_availability_timeout_ms
        self._patience = (patience_ms + config.linger_ms) / 1000 if patience_ms else None

    def _below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self._state >> 33) % limit

    def __call__(self, topic: TopicQueues) -> None:
        topic.sticky = self.pick(topic)
        topic.sticky_bytes = 0

    def pick(self, topic: TopicQueues) -> int:
        """Among the partitions with a leader; among all where none has one."""
        queues: list[PartitionQueue] = [queue for queue in topic.partitions if queue.leader != NO_LEADER]
        queues = queues or topic.partitions
        if self._patience is not None:
            oldest = self._clock.monotonic() - self._patience
            queues = [queue for queue in queues if not queue.closed or queue.closed[0].created_at >= oldest] or queues
        if len(queues) == 1:
            return queues[0].number
        if not self._is_adaptive:
            return queues[self._below(len(queues))].number
        lengths = [len(queue.closed) + (queue.open is not None) for queue in queues]
        longest = max(lengths)
        weights = [longest + 1 - length for length in lengths]
        point = self._below(sum(weights))
        for queue, weight in zip(queues, weights, strict=True):
            point -= weight
            if point < 0:
                return queue.number
        raise AssertionError("a point below the sum of all weights lies in one of them")
