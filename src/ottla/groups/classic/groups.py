"""The classic groups of one partition, as a part of its machine."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from ottla.groups.classic.answers import all_unknown, refused_join, refused_sync
from ottla.groups.classic.client import Client
from ottla.groups.classic.deliveries import Deliveries
from ottla.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup, State
from ottla.groups.classic.joining import Joins
from ottla.groups.classic.leaving import Leaves
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.rebalance import Rebalances
from ottla.groups.classic.records import entry_of, group_of
from ottla.groups.classic.sessions import Sessions
from ottla.groups.classic.syncing import Syncs
from ottla.groups.context import GroupContext
from ottla.groups.entries import GroupMetadataKey, GroupMetadataValue
from ottla.groups.group import Group
from ottla.ledger import Decision, Entry, Replayed, Timers
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.runtime.promise import Promise

LEAVES_MANY_SINCE_VERSION = 3

Answer = TypeVar("Answer")


class ClassicMembers(Protocol):
    """Who answers classic members of a group of another kind, one that is not empty. Refusals are KafkaErrors."""

    def join(self, group: Group, client: Client, request: JoinGroupRequest) -> Decision[Promise[JoinGroupResponse]]: ...

    def sync(self, group: Group, client: Client, request: SyncGroupRequest) -> Decision[Promise[SyncGroupResponse]]: ...

    def heartbeat(self, group: Group, client: Client, request: HeartbeatRequest) -> Decision[HeartbeatResponse]: ...

    def leave(self, group: Group, client: Client, request: LeaveGroupRequest) -> Decision[LeaveGroupResponse]: ...


class ClassicGroups:
    """Decides what becomes of the four requests of classic members, and replays what is kept of their groups.

    A join and a sync are answered by a promise, which may be kept long after the decision. `elsewhere` is whoever
    answers classic members of groups of another kind; without it they are refused.
    """

    elsewhere: ClassicMembers | None = None

    def __init__(self, context: GroupContext, timers: Timers, groups: dict[str, Group]) -> None:
        self._context = context
        self._groups = groups
        self._is_loaded = False
        # Groups whose first record is being written: they are here once it is replayed.
        self._created: dict[str, ClassicGroup] = {}
        self._deliveries = Deliveries(timers)
        self._sessions = Sessions(self._deliveries, self._session_expired)
        self._rebalances = Rebalances(self._sessions, self._deliveries, context.settings, self._classic)
        self._joins = Joins(context, self._rebalances, self._sessions, self._deliveries)
        self._syncs = Syncs(self._rebalances, self._sessions, context.counts)
        self._leaves = Leaves(self._rebalances, self._sessions)

    def _classic(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _session_expired(self, group_id: str, member_id: str) -> Decision[None]:
        return self._rebalances.session_expired(group_id, member_id)

    # What is kept

    def replay(self, record: Replayed) -> None:
        """A group that is here is ahead of its own records; one that is not is made of them."""
        key, value = record.entry.key, record.entry.value
        assert isinstance(key, GroupMetadataKey)
        created = self._created.pop(key.group, None)
        known = self._classic(key.group)
        if value is None:
            if known is not None:
                del self._groups[key.group]
                self.retire(known, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                self._deliveries.go_soon()
            return
        assert isinstance(value, GroupMetadataValue)
        if created is not None:
            self._groups[key.group] = created
        elif known is None or not self._is_loaded:
            group = group_of(key.group, value, self._context.clock, self._sessions)
            self._groups[key.group] = group
            if self._is_loaded:
                self._renew_sessions(group)

    def loaded(self) -> None:
        """Members get a whole session to be heard of. A group that is too large by now is rebalanced."""
        self._is_loaded = True
        limit = self._context.settings().group_max_size
        for group in list(self._groups.values()):
            if isinstance(group, ClassicGroup):
                self._renew_sessions(group)
                if len(group.members) > limit:
                    self._rebalances.prepare(group, f"it was loaded with more than {limit} members")

    def _renew_sessions(self, group: ClassicGroup) -> None:
        for member in group.members.by_id.values():
            self._sessions.renew(group.group_id, member)

    def unload(self, error: KafkaError) -> None:
        """Whoever waits has to look for the coordinator again."""
        for group in list(self._groups.values()):
            if isinstance(group, ClassicGroup):
                self.retire(group, error.code)
        self._deliveries.flush()

    def retire(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The group is no more, or of another kind from now on: whoever waits will be told so."""
        self._rebalances.stop_timers(group)
        group.turn(State.DEAD)
        self._refuse_waiting(group, code)

    def tell_waiting(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Whoever waits will be told this; the group goes on."""
        self._refuse_waiting(group, code)
        self._deliveries.go_soon()

    def _refuse_waiting(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in group.members.by_id.values():
            waiting_syncs, member.waiting_syncs = member.waiting_syncs, []
            self._deliveries.send(group.members.take_joins(member), refused_join(code, member.member_id))
            self._deliveries.send(waiting_syncs, refused_sync(code))

    def adopt(self, group_id: str, generation: int, members: Iterable[ClassicMember]) -> Decision[None]:
        """A group of consumers that was of another kind until now. Once that is written they begin a round."""
        now_ms = self._context.clock.now_ms()
        group = ClassicGroup(
            group_id,
            self._context.clock,
            self._sessions,
            state=State.STABLE,
            state_since_ms=now_ms,
            generation=generation,
            agreed_type=CONSUMER_PROTOCOL_TYPE,
        )
        for member in members:
            group.add(member, CONSUMER_PROTOCOL_TYPE)
        group.protocol = group.members.elected_protocol()
        group.look_at_subscriptions()
        self._created[group_id] = group

        def written(error: KafkaError | None) -> None:
            self._created.pop(group_id, None)
            if error is None and self._classic(group_id) is group and group.can_rebalance:
                self._renew_sessions(group)
                self._rebalances.prepare(group, "it was a consumer group until now")

        return Decision(None, [entry_of(group)], written=written)

    # Requests

    def join(self, client: Client, request: JoinGroupRequest) -> Decision[Promise[JoinGroupResponse]]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._join(group, client, request)
        if group is not None and not group.is_empty:
            if self.elsewhere is None:
                return _kept(refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return self.elsewhere.join(group, client, request)
        if request.member_id:
            return _kept(refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        return self._create(client, request, [] if group is None else group.tombstones())

    def _join(
        self, group: ClassicGroup, client: Client, request: JoinGroupRequest
    ) -> Decision[Promise[JoinGroupResponse]]:
        promise: Promise[JoinGroupResponse] = Promise()
        outcome = self._joins.join(group, client, request, promise)
        return self._deliveries.after(Decision(promise, outcome.entries, written=outcome.written))

    def _create(
        self, client: Client, request: JoinGroupRequest, tombstones: list[Entry]
    ) -> Decision[Promise[JoinGroupResponse]]:
        """A group is there once an empty record of it is written, whatever became of the request."""
        clock = self._context.clock
        group = ClassicGroup(request.group_id, clock, self._sessions, state_since_ms=clock.now_ms())
        entry = entry_of(group)
        promise: Promise[JoinGroupResponse] = Promise()
        self._joins.join(group, client, request, promise)
        self._created[group.group_id] = group

        def written(error: KafkaError | None) -> None:
            if error is None:
                return
            self._created.pop(group.group_id, None)
            if self._groups.get(group.group_id) is group:
                del self._groups[group.group_id]
            self.retire(group, error.code)

        return self._deliveries.after(Decision(promise, [*tombstones, entry], written=written))

    def sync(self, client: Client, request: SyncGroupRequest) -> Decision[Promise[SyncGroupResponse]]:
        group = self._groups.get(request.group_id)
        if group is None or group.is_empty:
            return _kept(refused_sync(ErrorCode.UNKNOWN_MEMBER_ID))
        if not isinstance(group, ClassicGroup):
            if self.elsewhere is None:
                return _kept(refused_sync(ErrorCode.UNKNOWN_MEMBER_ID))
            return self.elsewhere.sync(group, client, request)
        promise: Promise[SyncGroupResponse] = Promise()
        outcome = self._syncs.sync(group, request, promise)
        return self._deliveries.after(Decision(promise, outcome.entries, written=outcome.written))

    def heartbeat(self, client: Client, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return Decision(self._syncs.heartbeat(group, request))
        if group is None or self.elsewhere is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no classic group {request.group_id}")
        return self.elsewhere.heartbeat(group, client, request)

    def leave(self, client: Client, request: LeaveGroupRequest) -> Decision[LeaveGroupResponse]:
        """Answers member by member; before version 3 there is one of them."""
        group = self._groups.get(request.group_id)
        if client.api_version < LEAVES_MANY_SINCE_VERSION:
            request.members = [MemberIdentity(member_id=request.member_id)]
        if isinstance(group, ClassicGroup):
            return self._deliveries.after(self._leaves.leave(group, request.members))
        if group is None or self.elsewhere is None:
            return Decision(all_unknown(request.members))
        return self.elsewhere.leave(group, client, request)


def _kept(answer: Answer) -> Decision[Promise[Answer]]:
    promise: Promise[Answer] = Promise()
    promise.resolve(answer)
    return Decision(promise)
