"""FindCoordinator: which broker looks after a group or a transactional id.

Version 1 added the kind of key (0 group, 1 transaction), 4 many keys at once, 6 the kind for share groups (2), whose
keys read `group:topic-id:partition`.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class FindCoordinatorRequest(Request, key=ApiKey.FIND_COORDINATOR, versions=(0, 6), flexible=3):
    key: str = field("0-3")
    key_type: Int8 = field("1+")
    coordinator_keys: list[str] = field("4+")


class Coordinator(Struct):
    key: str = field("4+")
    node_id: Int32 = field("4+")
    host: str = field("4+")
    port: Int32 = field("4+")
    error_code: Int16 = field("4+")
    error_message: str | None = field("4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Response, answers=FindCoordinatorRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0-3")
    error_message: str | None = field("1-3", nullable="1-3", ignorable=True)
    node_id: Int32 = field("0-3")
    host: str = field("0-3")
    port: Int32 = field("0-3")
    coordinators: list[Coordinator] = field("4+")
