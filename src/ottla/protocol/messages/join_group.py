"""JoinGroup: a member enters a classic group and waits for the others.

Version 1 separated the rebalance timeout from the session timeout. From version 4 a new member is first turned back
with MEMBER_ID_REQUIRED and an id to come back with. Version 5 added static members, 7 the protocol type in the answer,
8 the reason for joining, 9 lets the leader skip the assignment.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class JoinGroupRequestProtocol(Struct):
    name: str = field("0+")
    metadata: bytes = field("0+")


class JoinGroupRequest(Request, key=ApiKey.JOIN_GROUP, versions=(0, 9), flexible=6):
    group_id: str = field("0+")
    session_timeout_ms: Int32 = field("0+")
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: str = field("0+")
    group_instance_id: str | None = field("5+", nullable="5+", default=None)
    protocol_type: str = field("0+")
    protocols: list[JoinGroupRequestProtocol] = field("0+")
    reason: str | None = field("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = field("0+")
    group_instance_id: str | None = field("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = field("0+")


class JoinGroupResponse(Response, answers=JoinGroupRequest):
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    error_code: Int16 = field("0+")
    generation_id: Int32 = field("0+", default=-1)
    protocol_type: str | None = field("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field("0+", nullable="7+")
    leader: str = field("0+")
    skip_assignment: bool = field("9+")
    member_id: str = field("0+")
    members: list[JoinGroupResponseMember] = field("0+")
