"""The coordinator of a group of KIP-848: it decides, and gives a partition away only when its reader let go of it."""

import asyncio
from dataclasses import dataclass, field

from tests.property.client.membership.model import Coordinator, topic_id_of

from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

SESSION_SECONDS = 6.0
INTERVAL_MS = 500
Part = tuple[bytes, int]


@dataclass
class _Member:
    rebalance_seconds: float
    topics: list[str]
    epoch: int = 0
    given: set[Part] = field(default_factory=set)
    """What it may have: it has it, or was told to."""
    owned: set[Part] = field(default_factory=set)
    """What it said that it has."""
    told: set[Part] | None = None
    session: asyncio.TimerHandle | None = None
    patience: asyncio.TimerHandle | None = None


class EpochCoordinator(Coordinator):
    def __init__(self, counts: dict[str, int]) -> None:
        super().__init__(counts)
        self.epoch = 1
        self._members: dict[str, _Member] = {}

    def knows(self, member_id: str) -> bool:
        return member_id in self._members

    def grow(self, topic: str, count: int) -> None:
        self.epoch += 1
        super().grow(topic, count)

    async def handle(self, request: Request) -> Response:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        if self.is_away:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
        if request.member_epoch < 0:
            self._remove(request.member_id)
            return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == 0:
            self._join(request)
        member = self._members.get(request.member_id)
        if member is None:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        if request.member_epoch not in (0, member.epoch):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.FENCED_MEMBER_EPOCH)
        if request.topic_partitions is not None:
            member.owned = {
                (topic.topic_id, number) for topic in request.topic_partitions for number in topic.partitions
            }
        if request.subscribed_topic_names is not None and request.subscribed_topic_names != member.topics:
            member.topics = request.subscribed_topic_names
            self.epoch += 1
        self._reconcile(request.member_id)
        self._touch(request.member_id)
        must_tell = member.told != member.given or request.member_epoch == 0 or request.topic_partitions is not None
        member.told = set(member.given)
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=_assignment(member.given) if must_tell else None,
        )

    def _join(self, request: ConsumerGroupHeartbeatRequest) -> None:
        assert request.subscribed_topic_names is not None
        assert request.topic_partitions == []
        if request.member_id in self._members:
            # The answer to the first one was lost, or it was fenced: nothing it had counts any more.
            self._members[request.member_id].given.clear()
            self._members[request.member_id].owned.clear()
            return
        self._members[request.member_id] = _Member(request.rebalance_timeout_ms / 1000, request.subscribed_topic_names)
        self.epoch += 1

    def _target(self, member_id: str) -> set[Part]:
        target = set()
        for topic, count in self.counts.items():
            readers = sorted(name for name, member in self._members.items() if topic in member.topics)
            if member_id in readers:
                mine = readers.index(member_id)
                target |= {(topic_id_of(topic), number) for number in range(count) if number % len(readers) == mine}
        return target

    def _reconcile(self, member_id: str) -> None:
        member = self._members[member_id]
        target = self._target(member_id)
        if member.owned - target:
            member.given = (member.given | member.owned) & target
            return
        if member.given - target:
            member.given &= target
        elsewhere = {
            part for name, other in self._members.items() if name != member_id for part in other.given | other.owned
        }
        member.given |= target - elsewhere
        member.epoch = self.epoch

    def _touch(self, member_id: str) -> None:
        member = self._members[member_id]
        loop = asyncio.get_running_loop()
        if member.session is not None:
            member.session.cancel()
        member.session = loop.call_later(SESSION_SECONDS, self._remove, member_id)
        if member.owned <= member.given:
            if member.patience is not None:
                member.patience.cancel()
            member.patience = None
        elif member.patience is None:
            member.patience = loop.call_later(member.rebalance_seconds, self._remove, member_id)

    def _remove(self, member_id: str) -> None:
        member = self._members.pop(member_id, None)
        if member is not None:
            self.epoch += 1
            for timer in (member.session, member.patience):
                if timer is not None:
                    timer.cancel()


def _assignment(parts: set[Part]) -> Assignment:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(parts):
        by_topic.setdefault(topic_id, []).append(number)
    return Assignment(
        topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=found) for topic_id, found in by_topic.items()]
    )
