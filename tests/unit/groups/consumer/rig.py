"""Groups of both kinds with their records in a list, timers that go by a clock set by hand, and topics made up.

A decision's entries are written as bytes and read back before they are replayed, as the log does it; `reload` makes a
new coordinator of what was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ottla.cluster.image import BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from ottla.groups.classic import ClassicGroups
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.membership import Client, check_heartbeat
from ottla.groups.consumer.migration import Migration
from ottla.groups.context import GroupContext
from ottla.groups.entries import GROUP_RECORD_TYPES, GroupMetadataKey
from ottla.groups.group import Group
from ottla.groups.settings import GroupSettings
from ottla.ledger.entries import Entry
from ottla.ledger.machine import Decision, Replayed
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.testing import ManualClock, SeededIds

GROUP = "group"
CLIENT = Client("client", "/127.0.0.1")
NO_WAIT = GroupSettings(group_consumer_assignment_interval_ms=0)

Answer = TypeVar("Answer")
Partitions = dict[str, set[int]]


def topic_id(name: str) -> bytes:
    """Small numbers, in the order of the names."""
    return sum(ord(letter) << 8 * place for place, letter in enumerate(reversed(name[:7]))).to_bytes(16, "big")


def topic(name: str, partition_count: int) -> TopicImage:
    partitions = tuple(PartitionImage(index, 1, 0, (1,), (1,), 0) for index in range(partition_count))
    return TopicImage(name, topic_id(name), partitions)


class ManualTimers:
    """Timers that fire when the clock is moved past them."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._timers: dict[str, tuple[float, Callable[[], Decision[None]]]] = {}

    def schedule(self, key: str, delay_ms: float, decide: Callable[[], Decision[None]]) -> None:
        self._timers[key] = (self._clock.now_ms() + delay_ms, decide)

    def cancel(self, key: str) -> None:
        self._timers.pop(key, None)

    def is_scheduled(self, key: str) -> bool:
        return key in self._timers

    def next_due(self, until_ms: float) -> tuple[float, Callable[[], Decision[None]]] | None:
        """The first timer that is due by then, which is taken out."""
        due = sorted((deadline, key) for key, (deadline, _) in self._timers.items() if deadline <= until_ms)
        return self._timers.pop(due[0][1]) if due else None


@dataclass
class Rig:
    settings: GroupSettings = NO_WAIT
    clock: ManualClock = field(default_factory=ManualClock)
    image: ClusterImage = field(default_factory=ClusterImage)
    log: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    refuses: bool = False

    def __post_init__(self) -> None:
        self.image = replace(self.image, brokers={1: BrokerRegistration(1, (), None, 0, b"")})
        self.reload()

    def reload(self) -> None:
        """Another broker has the partition from now on."""
        self.timers = ManualTimers(self.clock)
        self.groups: dict[str, Group] = {}
        context = GroupContext(self.clock, SeededIds(len(self.log)), lambda: self.settings, lambda: self.image)
        self.consumer = ConsumerGroups(context, self.timers, self.groups)
        self.classic = ClassicGroups(context, self.timers, self.groups)
        Migration(self.classic, self.consumer)
        for key, value in self.log:
            self._replay(key, value)
        self.classic.loaded()
        self.consumer.loaded()

    def _replay(self, key: bytes, value: bytes | None) -> None:
        record = Replayed(0, self.clock.now_ms(), GROUP_RECORD_TYPES.decode(key, value))
        if isinstance(record.entry.key, GroupMetadataKey):
            self.classic.replay(record)
        else:
            self.consumer.replay(record)

    def write(self, decide: Callable[[], Decision[Answer]]) -> Answer:
        decision = decide()
        if self.refuses and decision.entries:
            error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            if decision.written is not None:
                decision.written(error)
            raise error
        for entry in decision.entries:
            data = entry.encode()
            self.log.append(data)
            self._replay(*data)
        if decision.written is not None:
            decision.written(None)
        return decision.answer

    def pass_time(self, milliseconds: int) -> None:
        until_ms = self.clock.now_ms() + milliseconds
        while (due := self.timers.next_due(until_ms)) is not None:
            self.clock.advance(max(int(due[0]) - self.clock.now_ms(), 0))
            self.write(due[1])
        self.clock.advance(until_ms - self.clock.now_ms())

    # Topics

    def set_topics(self, **partition_counts: int) -> None:
        topics = {name: topic(name, count) for name, count in sorted(partition_counts.items())}
        by_id = {one.topic_id: one for one in topics.values()}
        self.image = replace(self.image, topics=topics, topics_by_id=by_id, version=self.image.version + 1)

    def named(self, partitions: list[TopicPartitions]) -> Partitions:
        names = {one.topic_id: one.name for one in self.image.topics.values()}
        return {names[one.topic_id]: set(one.partitions) for one in partitions}

    # Heartbeats

    def send(self, request: ConsumerGroupHeartbeatRequest, api_version: int = 1) -> ConsumerGroupHeartbeatResponse:
        check_heartbeat(request, api_version, self.settings.group_consumer_assignors)
        return self.write(lambda: self.consumer.heartbeat(request, CLIENT))

    def join(self, member_id: str, /, *names: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=list(names),
            topic_partitions=[],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.send(request)

    def heartbeat(
        self, member_id: str, epoch: int, owned: Partitions | None = None, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch)
        if owned is not None:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id(name), partitions=sorted(indexes)) for name, indexes in owned.items()
            ]
        for name, value in fields.items():
            setattr(request, name, value)
        return self.send(request)

    def leave(self, member_id: str, epoch: int = -1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        return self.heartbeat(member_id, epoch, **fields)

    # Looking

    def member(self, member_id: str) -> ConsumerMember:
        return self.consumer.find(GROUP).member(member_id)

    def has(self, member_id: str) -> Partitions:
        """What a member has by its records."""
        names = {one.topic_id: one.name for one in self.image.topics.values()}
        return {names[one]: set(given) for one, given in self.member(member_id).assigned.items()}

    def entries(self, since: int = 0) -> list[Entry]:
        return [GROUP_RECORD_TYPES.decode(key, value) for key, value in self.log[since:]]

    def types(self, since: int = 0) -> list[tuple[int, bool]]:
        """The types of records, and whether they say anything."""
        return [(entry.key.RECORD_TYPE, entry.value is not None) for entry in self.entries(since)]


def assigned(rig: Rig, response: ConsumerGroupHeartbeatResponse) -> Partitions | None:
    return None if response.assignment is None else rig.named(response.assignment.topic_partitions)


def code_of(action: Callable[[], object]) -> ErrorCode:
    try:
        action()
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
