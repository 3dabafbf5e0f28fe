"""JoinGroup: a member comes, comes back, or says something new.

| who                             | group       | what happens                                                        |
|---------------------------------|-------------|---------------------------------------------------------------------|
| new, dynamic, from version 4    | any         | gets an id and has to come back with it                             |
| new                             | any         | is added, which begins a rebalance                                  |
| a known instance without an id  | Stable      | takes its former place; no rebalance while the protocol stays       |
| the same                        | otherwise   | takes its former place in the rebalance, or begins one              |
| a member                        | Preparing   | waits for the others                                                |
| a member with nothing new       | Completing  | is told again of the generation                                     |
| the same, but not the leader    | Stable      | the same                                                            |
| a member otherwise              |             | begins a rebalance                                                  |
"""

import logging

from ottla.groups.classic.answers import refused_join, refused_sync
from ottla.groups.classic.client import Client
from ottla.groups.classic.deliveries import Deliveries
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.member import ClassicMember, protocols_of
from ottla.groups.classic.rebalance import Rebalances
from ottla.groups.classic.records import entry_of
from ottla.groups.classic.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS, Sessions
from ottla.groups.context import GroupContext
from ottla.ledger import Decision
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.runtime.promise import Promise

logger = logging.getLogger(__name__)

MEMBER_ID_REQUIRED_SINCE_VERSION = 4
SKIPS_ASSIGNMENT_SINCE_VERSION = 9
REASON_CHARACTERS = 255


class Joins:
    def __init__(
        self, context: GroupContext, rebalances: Rebalances, sessions: Sessions, deliveries: Deliveries
    ) -> None:
        self._context = context
        self._rebalances = rebalances
        self._sessions = sessions
        self._deliveries = deliveries

    def join(
        self, group: ClassicGroup, client: Client, request: JoinGroupRequest, promise: Promise[JoinGroupResponse]
    ) -> Decision[None]:
        """The promise is kept at once, or with the generation that the member will be in; refusals are KafkaErrors."""
        if client.api_version == 0:
            request.rebalance_timeout_ms = request.session_timeout_ms
        member_id = request.member_id
        if not self._has_room_for(group, member_id):
            member = group.members.by_id.get(member_id)
            if member is not None:
                self._rebalances.drop(group, member)
            group.members.remove(member_id)
            promise.resolve(refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return self._rebalances.complete_if_joined(group)
        if not group.agrees_with(request.protocol_type, protocols_of(request)):
            promise.resolve(refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
            return Decision(None)
        if member_id:
            return self._join_again(group, client, request, promise)
        if request.group_instance_id is None:
            return self._join_first(group, client, request, promise)
        former_id = group.members.by_instance.get(request.group_instance_id)
        new_id = self._new_id(request.group_instance_id)
        if former_id is None:
            return self._add(group, client, request, new_id, promise)
        return self._replace(group, client, request, group.members.by_id[former_id], new_id, promise)

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        """`group.max.size` counts those who wait during a rebalance, so that its last ones are turned away."""
        limit = self._context.settings().group_max_size
        member = group.members.by_id.get(member_id)
        if group.state is State.PREPARING_REBALANCE:
            return (member is not None and member.is_joining) or group.members.joining_count < limit
        return group.state is State.EMPTY or member is not None or len(group.members) < limit

    def _new_id(self, prefix: str) -> str:
        digits = self._context.ids.uuid().hex()
        return f"{prefix}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    # Those without an id

    def _join_first(
        self, group: ClassicGroup, client: Client, request: JoinGroupRequest, promise: Promise[JoinGroupResponse]
    ) -> Decision[None]:
        new_id = self._new_id(client.client_id)
        if client.api_version < MEMBER_ID_REQUIRED_SINCE_VERSION:
            return self._add(group, client, request, new_id, promise)
        forgotten = group.members.await_return(new_id)
        if forgotten is not None:
            self._sessions.end(group.group_id, forgotten)
        self._sessions.begin(group.group_id, new_id, request.session_timeout_ms)
        promise.resolve(refused_join(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        return Decision(None)

    def _add(
        self,
        group: ClassicGroup,
        client: Client,
        request: JoinGroupRequest,
        member_id: str,
        promise: Promise[JoinGroupResponse],
    ) -> Decision[None]:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            protocols_of(request),
            is_new=True,
            waiting_joins=[promise],
        )
        if group.is_first_rebalance:
            group.was_joined_while_new = True
        group.add(member, request.protocol_type)
        self._sessions.begin(group.group_id, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self._rebalances.go_on(group, f"{member_id!r} is new; {_reason(request)}")

    def _replace(
        self,
        group: ClassicGroup,
        client: Client,
        request: JoinGroupRequest,
        former: ClassicMember,
        new_id: str,
        promise: Promise[JoinGroupResponse],
    ) -> Decision[None]:
        """An instance is back under a new id. Whoever still uses the old one is fenced off."""
        former_leader = group.members.leader
        member = self._rename(group, former, new_id)
        group.members.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
        group.members.await_join(member, promise)
        reason = f"instance {request.group_instance_id!r} is {new_id!r} now; {_reason(request)}"
        if group.state is State.PREPARING_REBALANCE:
            return self._rebalances.complete_if_joined(group)
        if group.state is not State.STABLE or group.members.elected_protocol() != group.protocol:
            return self._rebalances.prepare(group, reason)
        generation = group.generation

        def written(error: KafkaError | None) -> None:
            if group.state is not State.STABLE or group.generation != generation:
                return
            if error is None:
                self._tell_replaced(group, member, client, former_leader)
            else:
                self._take_back(group, member, former, error, promise)

        return Decision(None, [entry_of(group)], written=written)

    def _rename(self, group: ClassicGroup, former: ClassicMember, new_id: str) -> ClassicMember:
        waiting_joins = group.members.take_joins(former)
        waiting_syncs, former.waiting_syncs = former.waiting_syncs, []
        member = group.members.rename(former, new_id)
        self._deliveries.send(waiting_joins, refused_join(ErrorCode.FENCED_INSTANCE_ID, former.member_id))
        self._deliveries.send(waiting_syncs, refused_sync(ErrorCode.FENCED_INSTANCE_ID))
        self._sessions.end(group.group_id, former.member_id)
        self._sessions.renew(group.group_id, member)
        return member

    def _tell_replaced(
        self, group: ClassicGroup, member: ClassicMember, client: Client, former_leader: str | None
    ) -> None:
        """A leader must not assign again, since a stable group would not take it.

        It is told to skip that, or, where its version cannot say so, that the leader is still who it was before.
        """
        is_leader = group.members.leader == member.member_id
        if client.api_version >= SKIPS_ASSIGNMENT_SINCE_VERSION:
            response = group.told_to(member, skip_assignment=is_leader)
        else:
            response = group.told_to(member)
            response.leader = former_leader or ""
            response.members = []
        self._deliveries.send(group.members.take_joins(member), response)

    def _take_back(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        former: ClassicMember,
        error: KafkaError,
        promise: Promise[JoinGroupResponse],
    ) -> None:
        logger.warning("%r: %r stays %r: %s", group, member.member_id, former.member_id, error)
        group.members.take_joins(member)
        group.members.update(member, former.protocols, former.rebalance_timeout_ms, former.session_timeout_ms)
        self._rename(group, member, former.member_id)
        promise.resolve(refused_join(error.code))

    # Those with an id

    def _join_again(
        self, group: ClassicGroup, client: Client, request: JoinGroupRequest, promise: Promise[JoinGroupResponse]
    ) -> Decision[None]:
        member_id = request.member_id
        if member_id in group.members.pending:
            if request.group_instance_id is not None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{member_id} was given to a member without instance")
            return self._add(group, client, request, member_id, promise)
        try:
            member = group.member(member_id, request.group_instance_id)
        except KafkaError as error:
            promise.resolve(refused_join(error.code, member_id))
            return Decision(None)
        is_unchanged = member.protocols == protocols_of(request)
        is_leader = group.members.leader == member_id
        if is_unchanged and (
            group.state is State.COMPLETING_REBALANCE or (group.state is State.STABLE and not is_leader)
        ):
            promise.resolve(group.told_to(member))
            return Decision(None)
        group.members.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
        group.members.await_join(member, promise)
        return self._rebalances.go_on(group, f"{member_id!r} joins again; {_reason(request)}")


def _reason(request: JoinGroupRequest) -> str:
    """Why the client says that it joins: any text, so that it is quoted and cut."""
    return f"it says {request.reason[:REASON_CHARACTERS]!r}" if request.reason else "it does not say why"
