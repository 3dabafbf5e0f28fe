"""The coordinators of this broker: groups, and transactions beside them.

Each has an internal topic, which is created when somebody first asks for a coordinator (FindCoordinator, Metadata),
and the state of each of its partitions that this broker leads. They follow the image like the replicas do, and right
after them.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol

from ottla.broker.markers import Ending, write_markers
from ottla.cluster.image import ClusterImage
from ottla.cluster.requests import NewTopic
from ottla.cluster.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from ottla.groups.context import GroupContext
from ottla.groups.coordinator import GroupCoordinator
from ottla.ledger import partition_for
from ottla.runtime import Executor, IdSource
from ottla.runtime.promise import Promise
from ottla.transactions import TopicPartition, TransactionContext, TransactionCoordinator

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


# How long a client that asks first waits for a new topic of which not all partitions can be read.
PATIENCE_SECONDS = 5.0


class LedgerPlace(Protocol):
    """What the topic of a coordinator is asked; `LedgerTopic` is one."""

    name: str

    def partition_of(self, key: str) -> int: ...

    async def loaded(self) -> None: ...


class Coordinator(Protocol):
    """What is asked of every coordinator, whatever it coordinates."""

    @property
    def topic(self) -> LedgerPlace: ...

    def new_topic(self) -> NewTopic:
        """Its topic, as it is created where there is none yet."""
        ...

    def follow(self, image: ClusterImage) -> None:
        """Hold what this broker leads of it. Returns at once; what is new is loaded meanwhile."""
        ...

    def stop(self) -> None:
        """Let go of everything; whoever waits is told to look for another coordinator."""
        ...


class Coordinators:
    """`of_topic` has all of them, by their internal topics."""

    def __init__(self, broker: "Broker", ids: IdSource, executor: Executor) -> None:
        self._broker = broker
        self._is_stopped = False
        context = GroupContext(
            clock=broker.clock,
            ids=ids,
            settings=lambda: broker.settings.config.groups,
            image=lambda: broker.image,
        )
        self.groups = GroupCoordinator(context, broker.replicas, executor)
        self.transactions = TransactionCoordinator(
            TransactionContext(
                clock=broker.clock,
                settings=lambda: broker.settings.config.transactions,
                image=lambda: broker.image,
                write_markers=lambda ended, partitions: write_markers(broker, ended, partitions),
            ),
            broker.replicas,
            executor,
            lambda: broker.producer_ids.next(),
        )
        self.of_topic: dict[str, Coordinator] = {GROUP_TOPIC: self.groups, TRANSACTION_TOPIC: self.transactions}
        broker.transaction_enders[GROUP_TOPIC] = self._end_in_group

    def _end_in_group(self, partition: int, ending: Ending) -> Promise[None]:
        """Offsets of groups are records of their coordinator, which lets them count or not."""
        return self.groups.end_transaction(
            partition,
            ending.writer,
            ending.coordinator_epoch,
            is_commit=ending.is_commit,
            transaction_version=ending.transaction_version,
        )

    def offsets_partition(self, group_id: str) -> TopicPartition:
        """Where a group's offsets are, or will be once there is a topic for them."""
        topic = self._broker.image.topics.get(GROUP_TOPIC)
        settings = self._broker.settings.config.groups
        count = settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)
        return TopicPartition(GROUP_TOPIC, partition_for(group_id, count))

    # Their topics

    def new_topic(self, name: str) -> NewTopic:
        """A topic that was asked for and is to be created: internal ones have settings of their own."""
        coordinator = self.of_topic.get(name)
        return NewTopic(name) if coordinator is None else coordinator.new_topic()

    async def ensure_topic(self, coordinator: Coordinator) -> None:
        """Create the topic of a coordinator where there is none, and return when it can be used; it may have failed."""
        name = coordinator.topic.name
        if name not in self._broker.image.topics:
            await self._broker.create_missing_topics([name])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await coordinator.topic.loaded()

    # Following the cluster

    def follow(self, image: ClusterImage) -> None:
        """To be called when the replicas hold what an image says."""
        if not self._is_stopped:
            for coordinator in self.of_topic.values():
                coordinator.follow(image)

    def stop(self) -> None:
        """The broker ends: those who wait for a rebalance must not hold up its end."""
        self._is_stopped = True
        for coordinator in self.of_topic.values():
            coordinator.stop()
