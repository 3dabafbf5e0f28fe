"""From one generation of a group to the next.

    prepare: everybody has to join again     complete: the generation begins     expire: who did not sync goes

The first members of an empty group wait for more to come, for `group.initial.rebalance.delay.ms`, and again as long as
new ones came meanwhile and the members' patience allows. Later rebalances go on when all members have joined. Members
who did not join in time are out, static ones stay: they are expected to come back within their session.
"""

import logging
from collections.abc import Callable

from ottla.groups.classic.answers import refused_join, refused_sync
from ottla.groups.classic.deliveries import Deliveries
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.records import entry_of
from ottla.groups.classic.sessions import Sessions
from ottla.groups.settings import GroupSettings
from ottla.ledger import Decision, Timers
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.sync_group import SyncGroupResponse

logger = logging.getLogger(__name__)


class Rebalances:
    """`find` gives the group with an id that is there when a timer is over, if there is one."""

    def __init__(
        self,
        sessions: Sessions,
        deliveries: Deliveries,
        settings: Callable[[], GroupSettings],
        find: Callable[[str], ClassicGroup | None],
    ) -> None:
        self._timers: Timers = deliveries
        self._sessions = sessions
        self._deliveries = deliveries
        self._settings = settings
        self._find = find

    # Joining

    def go_on(self, group: ClassicGroup, reason: str) -> Decision[None]:
        """Somebody came, changed or went: begin a rebalance, or end one that waited for it."""
        if group.can_rebalance:
            return self.prepare(group, reason)
        return self.complete_if_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> Decision[None]:
        """Everybody has to join again. Who waits for an assignment learns of it at once, others by their heartbeats."""
        logger.info("%r is rebalanced: %s", group, reason)
        if group.state is State.COMPLETING_REBALANCE:
            for member in group.members.by_id.values():
                member.assignment = b""
            self.answer_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.members.unsynced.clear()
        self._timers.cancel(_sync_key(group.group_id))
        if group.state is State.EMPTY:
            group.turn(State.PREPARING_REBALANCE)
            self._wait_for_more(group)
            return Decision(None)
        group.turn(State.PREPARING_REBALANCE)
        if group.members.all_joined:
            return self._complete(group)
        self._wait_for_members(group)
        return Decision(None)

    def _wait_for_more(self, group: ClassicGroup) -> None:
        delay_ms = self._settings().group_initial_rebalance_delay_ms
        remaining_ms = max(group.members.rebalance_timeout_ms - delay_ms, 0)
        group.was_joined_while_new = False
        self._schedule_first(group.group_id, delay_ms, remaining_ms)

    def _schedule_first(self, group_id: str, delay_ms: int, remaining_ms: int) -> None:
        self._timers.schedule(
            _join_key(group_id), delay_ms, lambda: self._complete_first(group_id, delay_ms, remaining_ms)
        )

    def _complete_first(self, group_id: str, delay_ms: int, remaining_ms: int) -> Decision[None]:
        group = self._find(group_id)
        if group is None or group.state is not State.PREPARING_REBALANCE:
            return Decision(None)
        if not group.was_joined_while_new or not remaining_ms:
            return self._complete(group)
        group.was_joined_while_new = False
        next_delay_ms = min(self._settings().group_initial_rebalance_delay_ms, remaining_ms)
        self._schedule_first(group_id, next_delay_ms, max(remaining_ms - delay_ms, 0))
        return Decision(None)

    def _wait_for_members(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        self._timers.schedule(
            _join_key(group_id), group.members.rebalance_timeout_ms, lambda: self._time_is_over(group_id)
        )

    def _time_is_over(self, group_id: str) -> Decision[None]:
        group = self._find(group_id)
        if group is None or group.state is not State.PREPARING_REBALANCE:
            return Decision(None)
        return self._complete(group)

    def complete_if_joined(self, group: ClassicGroup) -> Decision[None]:
        """End the rebalance if all have joined; the first one of a group takes its time."""
        if group.is_first_rebalance:
            return Decision(None)
        return self._complete_if_all_joined(group)

    def _complete_if_all_joined(self, group: ClassicGroup) -> Decision[None]:
        if group.state is State.PREPARING_REBALANCE and group.members.all_joined:
            return self._complete(group)
        return Decision(None)

    def _complete(self, group: ClassicGroup) -> Decision[None]:
        self._timers.cancel(_join_key(group.group_id))
        for member in list(group.members.by_id.values()):
            if not member.is_joining and member.instance_id is None:
                self.drop(group, member)
        if not group.members.elect_joined_leader() and len(group.members):
            logger.warning("%r: no member joined in time; its static members get more of it", group)
            self._wait_for_members(group)
            return Decision(None)
        group.next_generation()
        if group.state is State.EMPTY:
            return Decision(None, [entry_of(group)], written=lambda error: _report(group, error))
        for member in group.members.by_id.values():
            self._deliveries.send(group.members.take_joins(member), group.told_to(member))
            self._sessions.renew(group.group_id, member)
            member.is_new = False
            group.members.unsynced[member.member_id] = None
        generation = group.generation
        self._timers.schedule(
            _sync_key(group.group_id),
            group.members.rebalance_timeout_ms,
            lambda: self._sync_expired(group.group_id, generation),
        )
        return Decision(None)

    # Syncing

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member asked for its part of the generation."""
        group.members.unsynced.pop(member.member_id, None)
        if not group.members.unsynced:
            self._timers.cancel(_sync_key(group.group_id))

    def answer_syncs(self, group: ClassicGroup, code: ErrorCode = ErrorCode.NONE) -> None:
        """Tell all who wait for an assignment what it is, or why there is none."""
        for member in group.members.by_id.values():
            if not member.is_syncing:
                continue
            waiting, member.waiting_syncs = member.waiting_syncs, []
            self._deliveries.send(waiting, refused_sync(code) if code else assigned_to(group, member))
            self._sessions.renew(group.group_id, member)

    def _sync_expired(self, group_id: str, generation: int) -> Decision[None]:
        """Members that joined and then never asked for their assignment are gone."""
        group = self._find(group_id)
        if group is None or group.generation != generation or not group.members.unsynced:
            return Decision(None)
        if group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
            return Decision(None)
        for member_id in list(group.members.unsynced):
            self.drop(group, group.members.by_id[member_id])
        return self.prepare(group, "members did not ask for their assignment")

    # Going

    def drop(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Take a member out. If it waits it is told that nobody knows it, and may join anew."""
        self._sessions.end(group.group_id, member.member_id)
        waiting_joins = group.members.take_joins(member)
        waiting_syncs, member.waiting_syncs = member.waiting_syncs, []
        group.members.remove(member.member_id)
        self._deliveries.send(waiting_joins, refused_join(ErrorCode.UNKNOWN_MEMBER_ID))
        self._deliveries.send(waiting_syncs, refused_sync(ErrorCode.UNKNOWN_MEMBER_ID))

    def session_expired(self, group_id: str, member_id: str) -> Decision[None]:
        group = self._find(group_id)
        if group is None:
            return Decision(None)
        if member_id in group.members.pending:
            group.members.remove(member_id)
            return self._complete_if_all_joined(group)
        member = group.members.by_id.get(member_id)
        if member is None or member.is_heard_of:
            return Decision(None)
        self.drop(group, member)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            return self.prepare(group, f"{member_id!r} was not heard of")
        return self._complete_if_all_joined(group)

    def stop_timers(self, group: ClassicGroup) -> None:
        """The group is no more."""
        self._timers.cancel(_join_key(group.group_id))
        self._timers.cancel(_sync_key(group.group_id))
        for member_id in [*group.members.by_id, *group.members.pending]:
            self._sessions.end(group.group_id, member_id)


def assigned_to(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.agreed_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def _report(group: ClassicGroup, error: KafkaError | None) -> None:
    """After a crash the last generation with members comes back, and times out once more: no harm."""
    if error is not None:
        logger.warning("that %r is empty could not be written: %s", group, error)


def _join_key(group_id: str) -> str:
    return f"classic join {group_id}"


def _sync_key(group_id: str) -> str:
    return f"classic sync {group_id}"
