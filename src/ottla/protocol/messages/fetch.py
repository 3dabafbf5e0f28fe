"""Fetch: read record batches, as a consumer or as a follower that replicates.

| version | what it brought                                                                            |
|---------|--------------------------------------------------------------------------------------------|
| 4       | batches of magic 2, isolation levels; the lowest version there is                          |
| 5       | where the log starts                                                                       |
| 7       | fetch sessions: a request names only what changed since the last one                       |
| 9       | the leader epoch a client believes in, so that stale ones are fenced                       |
| 10      | zstd may be answered                                                                       |
| 11      | the rack of the client, and the replica it had better read from                            |
| 12      | the epoch of the last record a client has, and where its log diverges; the current leader  |
| 13      | topics by id                                                                               |
| 15      | a follower states its id and epoch in a struct of its own                                  |
| 16      | the answer carries the address of a new leader                                             |
| 17, 18  | a follower's directory id; the high watermark it knows                                     |
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Records, Struct, Uuid, field


class ReplicaState(Struct):
    replica_id: Int32 = field("15+", default=-1)
    replica_epoch: Int64 = field("15+", default=-1)


class FetchPartition(Struct):
    partition: Int32 = field("0+")
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64 = field("0+")
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32 = field("0+")
    replica_directory_id: Uuid = field("17+", tag=0, ignorable=True)
    high_watermark: Int64 = field("18+", default=9223372036854775807, tag=1, ignorable=True)


class FetchTopic(Struct):
    topic: str = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: list[FetchPartition] = field("0+")


class ForgottenTopic(Struct):
    topic: str = field("7-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: list[Int32] = field("7+")


class FetchRequest(Request, key=ApiKey.FETCH, versions=(4, 18), flexible=12):
    cluster_id: str | None = field("12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1)
    max_wait_ms: Int32 = field("0+")
    min_bytes: Int32 = field("0+")
    max_bytes: Int32 = field("3+", default=2147483647, ignorable=True)
    isolation_level: Int8 = field("4+", ignorable=True)
    session_id: Int32 = field("7+", ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field("0+")
    forgotten_topics_data: list[ForgottenTopic] = field("7+")
    rack_id: str = field("11+", ignorable=True)


class EpochEndOffset(Struct):
    epoch: Int32 = field("12+", default=-1)
    end_offset: Int64 = field("12+", default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = field("12+", default=-1)
    leader_epoch: Int32 = field("12+", default=-1)


class SnapshotId(Struct):
    end_offset: Int64 = field("0+", default=-1)
    epoch: Int32 = field("0+", default=-1)


class AbortedTransaction(Struct):
    producer_id: Int64 = field("4+")
    first_offset: Int64 = field("4+")


class PartitionData(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    high_watermark: Int64 = field("0+")
    last_stable_offset: Int64 = field("4+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", tag=1)
    snapshot_id: SnapshotId = field("12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field("4+", nullable="4+", ignorable=True)
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: Records | None = field("0+", nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: list[PartitionData] = field("0+")


class NodeEndpoint(Struct):
    node_id: Int32 = field("16+")
    host: str = field("16+")
    port: Int32 = field("16+")
    rack: str | None = field("16+", nullable="16+", default=None)


class FetchResponse(Response, answers=FetchRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("7+", ignorable=True)
    session_id: Int32 = field("7+")
    responses: list[FetchableTopicResponse] = field("0+")
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0)
