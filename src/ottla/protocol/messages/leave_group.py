"""LeaveGroup: members leave a classic group.

Version 3 made it a list of members, static ones too; 5 added the reason.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class MemberIdentity(Struct):
    member_id: str = field("3+")
    group_instance_id: str | None = field("3+", nullable="3+", default=None)
    reason: str | None = field("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Request, key=ApiKey.LEAVE_GROUP, versions=(0, 5), flexible=4):
    group_id: str = field("0+")
    member_id: str = field("0-2")
    members: list[MemberIdentity] = field("3+")


class MemberResponse(Struct):
    member_id: str = field("3+")
    group_instance_id: str | None = field("3+", nullable="3+")
    error_code: Int16 = field("3+")


class LeaveGroupResponse(Response, answers=LeaveGroupRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0+")
    members: list[MemberResponse] = field("3+")
