"""DeleteGroups: delete groups that have no members."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class DeleteGroupsRequest(Request, key=ApiKey.DELETE_GROUPS, versions=(0, 2), flexible=2):
    groups_names: list[str] = field("0+")


class DeletableGroupResult(Struct):
    group_id: str = field("0+")
    error_code: Int16 = field("0+")


class DeleteGroupsResponse(Response, answers=DeleteGroupsRequest):
    throttle_time_ms: Int32 = field("0+")
    results: list[DeletableGroupResult] = field("0+")
