"""Heartbeat: a member of a classic group shows that it is alive and learns of rebalances.

Version 3 added static members.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, field


class HeartbeatRequest(Request, key=ApiKey.HEARTBEAT, versions=(0, 4), flexible=4):
    group_id: str = field("0+")
    generation_id: Int32 = field("0+")
    member_id: str = field("0+")
    group_instance_id: str | None = field("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, answers=HeartbeatRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0+")
