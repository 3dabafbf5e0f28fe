"""What members are told."""

from collections.abc import Iterable

from ottla.groups.classic.member import ClassicMember
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse

NO_GENERATION = -1


def refused_join(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code, generation_id=NO_GENERATION, protocol_name=None, leader="", member_id=member_id, members=[]
    )


def listed(members: Iterable[ClassicMember], protocol: str | None) -> list[JoinGroupResponseMember]:
    """All members with what they say in the protocol, as the leader is told."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(protocol)
        )
        for member in members
    ]


def refused_sync(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")


def heartbeat(code: ErrorCode = ErrorCode.NONE) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)


def refused_leave(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code, members=[])


def left(member: MemberIdentity, code: ErrorCode = ErrorCode.NONE) -> MemberResponse:
    return MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code)


def all_unknown(members: Iterable[MemberIdentity]) -> LeaveGroupResponse:
    """There is no such group, so nobody could leave it."""
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE, members=[left(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in members]
    )
