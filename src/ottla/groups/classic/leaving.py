"""LeaveGroup: members go, or are taken out by an administrator, who knows static ones by their instance."""

from ottla.groups.classic.answers import left
from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.rebalance import Rebalances
from ottla.groups.classic.sessions import Sessions
from ottla.ledger import Decision
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse


class Leaves:
    def __init__(self, rebalances: Rebalances, sessions: Sessions) -> None:
        self._rebalances = rebalances
        self._sessions = sessions

    def leave(self, group: ClassicGroup, identities: list[MemberIdentity]) -> Decision[LeaveGroupResponse]:
        """Each of them is answered for itself; those who can go do, and cause one rebalance together."""
        answers = [self._take_out(group, identity) for identity in identities]
        response = LeaveGroupResponse(error_code=ErrorCode.NONE, members=answers)
        if all(answer.error_code for answer in answers):
            return Decision(response)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            outcome = self._rebalances.prepare(group, "members left")
        else:
            outcome = self._rebalances.complete_if_joined(group)
        return Decision(response, outcome.entries, written=outcome.written)

    def _take_out(self, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id:
            member_id = "" if instance_id is None else group.members.by_instance.get(instance_id, "")
        elif member_id in group.members.pending:
            group.members.remove(member_id)
            self._sessions.end(group.group_id, member_id)
            return left(identity)
        try:
            member = group.member(member_id, instance_id)
        except KafkaError as error:
            return left(identity, error.code)
        self._rebalances.drop(group, member)
        return left(identity)
