"""AddRaftVoter: add a controller to the voters of the quorum.

Version 1 can be answered before the change is committed.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uint16, Uuid, field


class Listener(Struct):
    name: str = field("0+")
    host: str = field("0+")
    port: Uint16 = field("0+")


class AddRaftVoterRequest(Request, key=ApiKey.ADD_RAFT_VOTER, versions=(0, 1), flexible=0):
    cluster_id: str | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    listeners: list[Listener] = field("0+")
    ack_when_committed: bool = field("1+", default=True)


class AddRaftVoterResponse(Response, answers=AddRaftVoterRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", ignorable=True)
