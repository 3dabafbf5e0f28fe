"""SyncGroup: the leader of a classic group hands in the assignment, every member gets its part.

Version 3 added static members, 5 the protocol type and name, so that a mismatch is noticed.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class SyncGroupRequestAssignment(Struct):
    member_id: str = field("0+")
    assignment: bytes = field("0+")


class SyncGroupRequest(Request, key=ApiKey.SYNC_GROUP, versions=(0, 5), flexible=4):
    group_id: str = field("0+")
    generation_id: Int32 = field("0+")
    member_id: str = field("0+")
    group_instance_id: str | None = field("3+", nullable="3+", default=None)
    protocol_type: str | None = field("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field("0+")


class SyncGroupResponse(Response, answers=SyncGroupRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0+")
    protocol_type: str | None = field("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = field("0+")
