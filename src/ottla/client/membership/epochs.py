"""A member of a group of the next generation (KIP-848), without connections and without a clock.

One request does everything: ConsumerGroupHeartbeat. The broker decides who reads what and tells each member its part;
the member makes it true (`reconciliation`) and says so with its next heartbeat, which only has what changed since the
last one that was answered. So a partition goes to a new reader when the old one said that it no longer has it.

| epoch     | means                                                                                           |
|-----------|-------------------------------------------------------------------------------------------------|
| 0         | joins: everything is told, whatever was owned before is lost                                    |
| 1 ...     | a member; a commit must name this epoch                                                         |
| -1, -2    | leaves; a static member (-2) only for a while, the group keeps its part for it                  |

`UNKNOWN_MEMBER_ID` and `FENCED_MEMBER_EPOCH` throw a member out: it loses everything and joins again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.membership.answers import MOVED, Next, final_error
from ottla.client.membership.interface import NO_GENERATION, Generation
from ottla.client.membership.settings import GroupSettings
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_FOR_A_WHILE_EPOCH = -2
FIRST_INTERVAL_MS = 5_000
"""Until the broker says how often it wants to hear of a member."""

IdPartition = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a member asks for: names, or an expression that the broker resolves."""

    names: frozenset[str] = frozenset()
    expression: str | None = None


@dataclass(slots=True)
class _Told:
    """What the broker knows of this member, as far as it answered."""

    rebalance_timeout_ms: int | None = None
    wish: Wish | None = None
    assignor: str | None = None
    owned: frozenset[IdPartition] | None = None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The way from what is owned to what the broker wants, as far as names of topics are known."""

    target: frozenset[IdPartition]
    resolved: Mapping[TopicPartition, bytes]
    revoked: frozenset[TopicPartition]
    added: frozenset[TopicPartition]


class EpochMember:
    """`epoch` is the one to be sent; `generation` what commits name, which has none while the epoch is not above 0."""

    def __init__(self, settings: GroupSettings, member_id: str) -> None:
        self.epoch = JOIN_EPOCH
        self.member_id = member_id
        self.heartbeat_interval_ms = FIRST_INTERVAL_MS
        self.target: frozenset[IdPartition] | None = None
        self.owned: frozenset[TopicPartition] = frozenset()
        self._settings = settings
        self._ids: dict[TopicPartition, bytes] = {}
        self._acknowledged: frozenset[IdPartition] | None = None
        self._told = _Told()
        self._telling = _Told()
        self._may_have_joined = False

    @property
    def generation(self) -> Generation:
        epoch = self.epoch if self.epoch > JOIN_EPOCH else NO_GENERATION
        return Generation(self.member_id, epoch, self._settings.group_instance_id)

    # Heartbeats.

    def heartbeat_request(self, wish: Wish) -> ConsumerGroupHeartbeatRequest:
        if self.epoch == JOIN_EPOCH:
            self._told = _Told()
            self._may_have_joined = True
        told, settings = self._told, self._settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=settings.group_instance_id,
        )
        if told.rebalance_timeout_ms != settings.max_poll_interval_ms:
            request.rebalance_timeout_ms = settings.max_poll_interval_ms
            request.rack_id = settings.client_rack or None
        if told.wish != wish:
            self._write_wish(request, wish)
        if told.assignor != settings.remote_assignor:
            request.server_assignor = settings.remote_assignor
        owned = self._acknowledged if self._acknowledged is not None else frozenset[IdPartition]()
        if told.owned != owned:
            request.topic_partitions = _by_id(owned)
        self._telling = _Told(settings.max_poll_interval_ms, wish, settings.remote_assignor, owned)
        return request

    def _write_wish(self, request: ConsumerGroupHeartbeatRequest, wish: Wish) -> None:
        """An empty expression takes back one that was told before; a null one leaves it."""
        before = self._told.wish
        if before is None or before.names != wish.names or self.epoch == JOIN_EPOCH:
            request.subscribed_topic_names = sorted(wish.names)
        if before is None or before.expression != wish.expression:
            had_expression = before is not None and before.expression is not None
            request.subscribed_topic_regex = wish.expression or ("" if had_expression else None)

    def has_news(self, wish: Wish) -> bool:
        """Whether the broker should hear of this member before the interval is over."""
        return self.epoch == JOIN_EPOCH or self._told.wish != wish or self._told.owned != self._acknowledged

    def heartbeat_answered(self, answer: ConsumerGroupHeartbeatResponse, sent: Generation) -> Next:
        code = ErrorCode(answer.error_code)
        if sent != self.generation:
            return Next.GO_ON
        if code is ErrorCode.NONE:
            self._told = self._telling
            self.member_id = answer.member_id or self.member_id
            self.epoch = answer.member_epoch
            self.heartbeat_interval_ms = answer.heartbeat_interval_ms
            if self._acknowledged is None:
                self._acknowledged = frozenset()
            if answer.assignment is not None:
                self.target = frozenset(
                    (topic.topic_id, partition)
                    for topic in answer.assignment.topic_partitions
                    for partition in topic.partitions
                )
            return Next.GO_ON
        self.unanswered()
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            was_joining = self.epoch == JOIN_EPOCH
            self.leave()
            return Next.LATER if was_joining else Next.AGAIN
        if code in MOVED:
            return Next.ELSEWHERE
        if code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            return Next.LATER
        instance_id = self._settings.group_instance_id
        raise final_error(code, self._settings.group_id, instance_id, answer.error_message)

    def unanswered(self) -> None:
        """The broker may or may not have heard the last heartbeat: everything is told once more."""
        self._told = _Told()

    def commit_refused(self, code: ErrorCode, sent: Generation) -> None:
        """Nothing: the next heartbeat learns the same, and a newer epoch makes another commit good."""

    # The assignment.

    def unknown_ids(self, names: Mapping[bytes, str]) -> list[bytes]:
        """Topics of the assignment whose names are not known yet."""
        return sorted({topic_id for topic_id, _partition in self.target or ()} - names.keys())

    def reconciliation(self, names: Mapping[bytes, str]) -> Reconciliation | None:
        """None when there is nothing to do. Topics without a name wait for it; the rest is made true already."""
        if self.target is None or self.epoch == JOIN_EPOCH:
            return None
        resolved = {
            TopicPartition(names[topic_id], partition): topic_id
            for topic_id, partition in sorted(self.target)
            if topic_id in names
        }
        if resolved == self._ids and self._acknowledged == frozenset(self._id_partitions(resolved)):
            return None
        kept = {partition for partition, topic_id in resolved.items() if self._ids.get(partition) == topic_id}
        return Reconciliation(self.target, resolved, self.owned - kept, frozenset(resolved) - kept)

    def gave_back(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            self._ids.pop(partition, None)
        self.owned = frozenset(self._ids)

    def took(self, reconciliation: Reconciliation) -> None:
        self._ids = dict(reconciliation.resolved)
        self.owned = frozenset(self._ids)

    def acknowledge(self) -> None:
        """What is owned now may be told: listeners have seen it."""
        self._acknowledged = frozenset(self._id_partitions(self._ids))

    # Leaving.

    def leave(self) -> None:
        """Out of the group; `owned` is what is left to be lost."""
        self.epoch = JOIN_EPOCH
        self._may_have_joined = False
        self.target = None
        self._acknowledged = None
        self.unanswered()

    def leave_request(self) -> ConsumerGroupHeartbeatRequest | None:
        """Also for who asked to join and was not answered yet; None for who never asked."""
        if not self._may_have_joined:
            return None
        instance_id = self._settings.group_instance_id
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_EPOCH if instance_id is None else LEAVE_FOR_A_WHILE_EPOCH,
            instance_id=instance_id,
        )

    @staticmethod
    def _id_partitions(ids: Mapping[TopicPartition, bytes]) -> Iterable[IdPartition]:
        return ((topic_id, partition.partition) for partition, topic_id in ids.items())


def _by_id(partitions: Iterable[IdPartition]) -> list[TopicPartitions]:
    numbers: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        numbers.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=topic_id, partitions=found) for topic_id, found in numbers.items()]
