"""The classic groups of one partition, at a desk: a test is the clock, the log and the clients.

Records go through their bytes, and a restart replays them, so what a test sees is what a broker would do.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ottla.cluster.image import ClusterImage
from ottla.groups.classic import ClassicGroup, ClassicGroups, Client
from ottla.groups.context import GroupContext, GroupCounts
from ottla.groups.entries import GROUP_RECORD_TYPES, GroupMetadataValue
from ottla.groups.group import Group
from ottla.groups.settings import GroupSettings
from ottla.ledger import Decision, Entry, Replayed
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.runtime.promise import Promise
from ottla.testing import ManualClock, SeededIds

GROUP = "readers"
HOST = "/127.0.0.1"
SESSION_MS, REBALANCE_MS = 10_000, 30_000
DELAY_MS = 3_000
DIED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker died")

Answer = TypeVar("Answer")


class ManualTimers:
    """Fires when the desk's clock gets there, in the order of the times."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._set: dict[str, tuple[float, int, Callable[[], Decision[None]]]] = {}
        self._count = 0

    def schedule(self, key: str, delay_ms: float, decide: Callable[[], Decision[None]]) -> None:
        self._count += 1
        self._set[key] = (self._clock.now_ms() + delay_ms, self._count, decide)

    def cancel(self, key: str) -> None:
        self._set.pop(key, None)

    def is_scheduled(self, key: str) -> bool:
        return key in self._set

    def next_until(self, time_ms: float) -> Callable[[], Decision[None]] | None:
        """The next one that is due by then, with the clock at its time."""
        key = min(self._set, key=lambda key: self._set[key][:2], default=None)
        if key is None or self._set[key][0] > time_ms:
            return None
        due_ms, _, decide = self._set.pop(key)
        self._clock.advance(max(int(due_ms) - self._clock.now_ms(), 0))
        return decide

    def __len__(self) -> int:
        return len(self._set)


class Desk:
    """`failure` is what the next writes end with, while it is set."""

    def __init__(self, **settings: int) -> None:
        self.clock = ManualClock()
        self.settings = GroupSettings(group_initial_rebalance_delay_ms=DELAY_MS)
        self.set(**settings)
        self.records: list[tuple[bytes, bytes | None]] = []
        self.failure: KafkaError | None = None
        self.counts = GroupCounts()
        self._ids = SeededIds(7)
        self._waiting: list[Promise[JoinGroupResponse] | Promise[SyncGroupResponse]] = []
        self._begin()

    def set(self, **settings: int) -> None:
        self.settings = replace(self.settings, **settings)  # type: ignore[arg-type]  # all that tests change are numbers

    def _begin(self) -> None:
        self.timers = ManualTimers(self.clock)
        self.groups: dict[str, Group] = {}
        context = GroupContext(self.clock, self._ids, lambda: self.settings, _no_image, self.counts)
        self.classic = ClassicGroups(context, self.timers, self.groups)
        for offset, (key, value) in enumerate(self.records):
            self.classic.replay(Replayed(offset, self.clock.now_ms(), GROUP_RECORD_TYPES.decode(key, value)))
        self.classic.loaded()

    def crash(self) -> None:
        """The broker dies with all who wait, and comes back."""
        for promise in self._waiting:
            promise.reject(DIED)
        self._begin()

    def unload(self) -> None:
        """Another broker leads the partition, and then this one again."""
        self.classic.unload(KafkaError(ErrorCode.NOT_COORDINATOR))
        self._begin()

    def perform(self, decide: Callable[[], Decision[Answer]]) -> Answer:
        """As a ledger does it: the answer, or the refusal as an error."""
        decision = decide()
        if decision.entries and self.failure is not None:
            if decision.written is not None:
                decision.written(self.failure)
            raise self.failure
        for entry in decision.entries:
            key, value = entry.encode()
            self.records.append((key, value))
            self.classic.replay(Replayed(len(self.records), self.clock.now_ms(), entry))
        if decision.written is not None:
            decision.written(None)
        return decision.answer

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with all that it brings."""
        until_ms = self.clock.now_ms() + milliseconds
        while (decide := self.timers.next_until(until_ms)) is not None:
            try:
                self.perform(decide)
            except KafkaError:
                continue
        self.clock.advance(until_ms - self.clock.now_ms())

    def fire_next(self) -> None:
        """Let time pass until something happens, and no further."""
        decide = self.timers.next_until(float("inf"))
        assert decide is not None
        self.perform(decide)

    def delete(self, group_id: str = GROUP) -> None:
        group = self.group(group_id)
        group.check_delete()
        self.perform(lambda: Decision(None, group.tombstones()))

    # Looking

    @property
    def nobody_waits(self) -> bool:
        """Whether every join and every sync was answered, or given up by its client."""
        return all(promise.done() for promise in self._waiting)

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def state(self) -> str:
        return self.group().state_name

    def last_record(self) -> tuple[Entry, GroupMetadataValue | None]:
        entry = GROUP_RECORD_TYPES.decode(*self.records[-1])
        assert entry.value is None or isinstance(entry.value, GroupMetadataValue)
        return entry, entry.value

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        group_id: str = GROUP,
        client_id: str = "client",
    ) -> Promise[JoinGroupResponse]:
        offered = {"range": b"topics"} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in offered.items()],
        )
        client = Client(client_id, HOST, version)
        return self._later(self.perform(lambda: self.classic.join(client, request)))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
        group_id: str = GROUP,
    ) -> Promise[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in (assignments or {}).items()
            ],
        )
        return self._later(self.perform(lambda: self.classic.sync(Client("client", HOST, 5), request)))

    def _later(self, promise: Promise[Answer]) -> Promise[Answer]:
        self._waiting = [other for other in self._waiting if not other.done()]
        self._waiting.append(promise)  # type: ignore[arg-type]  # only joins and syncs come here
        return promise

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        try:
            answer = self.perform(lambda: self.classic.heartbeat(Client("client", HOST, 4), request))
        except KafkaError as error:
            return error.code
        return ErrorCode(answer.error_code)

    def leave(self, *members: tuple[str, str | None], version: int = 5) -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members],
        )
        answer: LeaveGroupResponse = self.perform(lambda: self.classic.leave(Client("client", HOST, version), request))
        assert answer.error_code == ErrorCode.NONE
        return [ErrorCode(member.error_code) for member in answer.members]

    # Whole rounds

    def new_id(self) -> str:
        """An id for a dynamic member."""
        answer = self.join().result()
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return answer.member_id

    def stable(
        self, count: int = 1, *, instances: tuple[str | None, ...] = (), rebalance_ms: int = REBALANCE_MS
    ) -> list[str]:
        """A new group in its first generation; the ids of its members, the leader first. Each has its id as part."""
        chosen = instances or (None,) * count
        waiting = [
            self.join("" if instance else self.new_id(), instance=instance, rebalance_ms=rebalance_ms)
            for instance in chosen
        ]
        while not all(promise.done() for promise in waiting):
            self.advance(100)
        return self.sync_all([promise.result() for promise in waiting])

    def sync_all(self, joined: list[JoinGroupResponse]) -> list[str]:
        """All members of a generation sync, the leader last; their ids, the leader first."""
        leader = joined[0].leader
        ids = sorted((answer.member_id for answer in joined), key=lambda member_id: member_id != leader)
        instances = {member.member_id: member.instance_id for member in self.group().members.by_id.values()}
        generation = joined[0].generation_id
        waiting = [
            self.sync(
                member_id, generation, _parts(ids) if member_id == leader else None, instance=instances[member_id]
            )
            for member_id in reversed(ids)
        ]
        assert [promise.result().assignment for promise in waiting] == [_part(member_id) for member_id in reversed(ids)]
        assert self.state == "Stable"
        return ids


def _parts(ids: list[str]) -> dict[str, bytes]:
    return {member_id: _part(member_id) for member_id in ids}


def _part(member_id: str) -> bytes:
    return b"part of " + member_id.encode()


def _no_image() -> ClusterImage:
    raise AssertionError("classic groups do not look at the cluster")


def code_of(promise: Promise[JoinGroupResponse] | Promise[SyncGroupResponse]) -> ErrorCode:
    """The error of an answer that is there."""
    return ErrorCode(promise.result().error_code)


def refusal_of(call: Callable[[], object]) -> ErrorCode:
    """The code that a request is refused with as a whole."""
    try:
        call()
    except KafkaError as error:
        return error.code
    raise AssertionError("it was not refused")
