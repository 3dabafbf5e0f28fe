"""RemoveRaftVoter: remove a controller from the voters of the quorum."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Uuid, field


class RemoveRaftVoterRequest(Request, key=ApiKey.REMOVE_RAFT_VOTER, versions=(0, 0), flexible=0):
    cluster_id: str | None = field("0+", nullable="0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")


class RemoveRaftVoterResponse(Response, answers=RemoveRaftVoterRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", ignorable=True)
