"""ListGroups: the groups a broker looks after.

Version 4 can select by state, 5 by type.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class ListGroupsRequest(Request, key=ApiKey.LIST_GROUPS, versions=(0, 5), flexible=3):
    states_filter: list[str] = field("4+")
    types_filter: list[str] = field("5+")


class ListedGroup(Struct):
    group_id: str = field("0+")
    protocol_type: str = field("0+")
    group_state: str = field("4+", ignorable=True)
    group_type: str = field("5+", ignorable=True)


class ListGroupsResponse(Response, answers=ListGroupsRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0+")
    groups: list[ListedGroup] = field("0+")
