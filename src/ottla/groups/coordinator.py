"""The coordinator of groups: which partition of `__consumer_offsets` a group belongs to, and what happens there.

    request -> coordinator -> ledger of the group's partition -> machine decides -> records -> answer

Every call gives back a promise, also where the group is another broker's: refusals come through it.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ottla.cluster.image import ClusterImage, changed_topics
from ottla.cluster.requests import NewTopic
from ottla.cluster.topic_names import GROUP_TOPIC
from ottla.groups.context import GroupContext
from ottla.groups.entries import GROUP_RECORD_TYPES
from ottla.groups.group import Group
from ottla.groups.machine import GroupMachine
from ottla.ledger import Decision, Ledger, LedgerTopic, Timers, Writer, replication_factor
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.list_groups import ListedGroup
from ottla.replication.manager import ReplicaManager
from ottla.runtime import Executor
from ottla.runtime.awaiting import kept
from ottla.runtime.promise import Promise, rejected

Answer = TypeVar("Answer")


class GroupCoordinator:
    """See the module."""

    def __init__(self, context: GroupContext, replicas: ReplicaManager, executor: Executor) -> None:
        self.context = context
        self._image: ClusterImage | None = None
        self.topic: LedgerTopic[GroupMachine] = LedgerTopic(
            GROUP_TOPIC,
            GROUP_RECORD_TYPES,
            self._new_machine,
            replicas,
            context.clock,
            executor,
        )

    def _new_machine(self, index: int, timers: Timers) -> GroupMachine:
        return GroupMachine(self.context, timers)

    def new_topic(self) -> NewTopic:
        """The topic, as it is created when a coordinator is first asked for."""
        settings = self.context.settings()
        return NewTopic(
            GROUP_TOPIC,
            num_partitions=settings.offsets_topic_num_partitions,
            replication_factor=replication_factor(self.context.image(), settings.offsets_topic_replication_factor),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )

    # One group

    def write(
        self, group_id: str, decide: Callable[[GroupMachine], Decision[Answer]], *, allows_empty_id: bool = False
    ) -> Promise[Answer]:
        """Decide about a group; the answer comes when what was decided is committed.

        The empty id is INVALID_GROUP_ID, but for the few requests that Kafka has always allowed it for.
        """
        try:
            ledger = self._ledger_of(group_id, allows_empty_id)
        except KafkaError as error:
            return rejected(error)
        return ledger.write(lambda: decide(ledger.machine))

    def read(
        self, group_id: str, look: Callable[[GroupMachine], Answer], *, allows_empty_id: bool = False
    ) -> Promise[Answer]:
        """Look at a group; the answer comes when all of what was seen is committed."""
        return self.write(group_id, lambda machine: Decision(look(machine)), allows_empty_id=allows_empty_id)

    def check_here(self, group_id: str) -> int:
        """The partition of a group that this broker coordinates; raises where it does not, or not yet."""
        return self._ledger_of(group_id, allows_empty_id=False).partition.index

    def _ledger_of(self, group_id: str, allows_empty_id: bool) -> Ledger[GroupMachine]:
        if not group_id and not allows_empty_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the id of a group must not be empty")
        return self.topic.ledger_of(group_id)

    # All groups, and whole partitions

    async def listed(self, is_wanted: Callable[[Group], bool]) -> list[ListedGroup]:
        """The groups of all partitions that this broker leads; the loop has its turn after each of them."""
        found: list[ListedGroup] = []
        for ledger in self.topic:
            try:
                found += await kept(ledger.read(partial(_listed, ledger.machine, is_wanted)))
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
            await asyncio.sleep(0)
        return found

    def end_transaction(
        self, partition: int, writer: Writer, coordinator_epoch: int, *, is_commit: bool, transaction_version: int = 0
    ) -> Promise[None]:
        """Write the marker that ends a producer's transaction in a partition of `__consumer_offsets`."""
        try:
            return self.topic.ledger(partition).end_transaction(
                writer, coordinator_epoch, is_commit=is_commit, transaction_version=transaction_version
            )
        except KafkaError as error:
            return rejected(error)

    # Following the cluster

    def follow(self, image: ClusterImage) -> None:
        """Hold the partitions that this broker leads, and forget the offsets of topics that are no more."""
        self.topic.follow(image)
        before, self._image = self._image, image
        if before is None or before.topics is image.topics:
            return
        deleted = {
            topic.name: frozenset((topic.topic_id,))
            for topic, after in changed_topics(before, image)
            if topic is not None and after is None
        }
        for ledger in self.topic:
            ledger.machine.topics_changed(deleted)

    def stop(self) -> None:
        """Let go of all groups; whoever waits is told to look for another coordinator."""
        self.topic.stop()


def _listed(machine: GroupMachine, is_wanted: Callable[[Group], bool]) -> list[ListedGroup]:
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.kind,
        )
        for group in machine.all_groups()
        if is_wanted(group)
    ]
