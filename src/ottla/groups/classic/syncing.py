"""SyncGroup and Heartbeat: members ask for their part of a generation, and whether it still holds."""

from ottla.groups.classic.answers import heartbeat
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.member import one_more
from ottla.groups.classic.rebalance import Rebalances, assigned_to
from ottla.groups.classic.records import entry_of
from ottla.groups.classic.sessions import Sessions
from ottla.groups.context import GroupCounts
from ottla.ledger import Decision
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.runtime.promise import Promise


class Syncs:
    def __init__(self, rebalances: Rebalances, sessions: Sessions, counts: GroupCounts) -> None:
        self._counts = counts
        self._rebalances = rebalances
        self._sessions = sessions

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, promise: Promise[SyncGroupResponse]
    ) -> Decision[None]:
        """The promise is kept at once, or when the leader's assignment is written; refusals are KafkaErrors."""
        member = group.member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        if _differ(request.protocol_type, group.agreed_type) or _differ(request.protocol_name, group.protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{group!r} has another protocol")
        if group.state is State.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{group!r} is being rebalanced")
        if group.state is State.STABLE:
            self._rebalances.synced(group, member)
            promise.resolve(assigned_to(group, member))
            return Decision(None)
        member.waiting_syncs = one_more(member.waiting_syncs, promise)
        self._rebalances.synced(group, member)
        if group.members.leader != member.member_id:
            return Decision(None)
        return self._assign(group, {part.member_id: part.assignment for part in request.assignments})

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> Decision[None]:
        """Write what the leader handed in; once that is done, everybody gets theirs."""
        generation = group.generation

        def written(error: KafkaError | None) -> None:
            if group.state is not State.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error is not None:
                for member in group.members.by_id.values():
                    member.assignment = b""
                self._rebalances.answer_syncs(group, error.code)
                self._rebalances.prepare(group, f"the assignment could not be written: {error}")
                return
            for member in group.members.by_id.values():
                member.assignment = assignments.get(member.member_id, b"")
            group.turn(State.STABLE)
            self._counts.completed_rebalances += 1
            self._rebalances.answer_syncs(group)

        return Decision(None, [entry_of(group, assignments)], written=written)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
        member = group.member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        self._sessions.renew(group.group_id, member)
        is_over = group.state is State.PREPARING_REBALANCE
        return heartbeat(ErrorCode.REBALANCE_IN_PROGRESS if is_over else ErrorCode.NONE)


def _differ(given: str | None, agreed: str | None) -> bool:
    """Older versions do not say."""
    return given is not None and agreed is not None and given != agreed
