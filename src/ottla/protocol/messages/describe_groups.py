"""DescribeGroups: state, protocol and members of classic groups.

Version 3 can add what the client is allowed to do, 4 names static members, 6 answers GROUP_ID_NOT_FOUND with a message
where older ones show a group in state Dead.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class DescribeGroupsRequest(Request, key=ApiKey.DESCRIBE_GROUPS, versions=(0, 6), flexible=5):
    groups: list[str] = field("0+")
    include_authorized_operations: bool = field("3+")


class DescribedGroupMember(Struct):
    member_id: str = field("0+")
    group_instance_id: str | None = field("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = field("0+")
    client_host: str = field("0+")
    member_metadata: bytes = field("0+")
    member_assignment: bytes = field("0+")


class DescribedGroup(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("6+", nullable="6+", default=None)
    group_id: str = field("0+")
    group_state: str = field("0+")
    protocol_type: str = field("0+")
    protocol_data: str = field("0+")
    members: list[DescribedGroupMember] = field("0+")
    authorized_operations: Int32 = field("3+", default=-2147483648)


class DescribeGroupsResponse(Response, answers=DescribeGroupsRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    groups: list[DescribedGroup] = field("0+")
