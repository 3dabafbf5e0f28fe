"""Produce: append record batches to partitions.

| version | what it brought                                                                            |
|---------|--------------------------------------------------------------------------------------------|
| 3       | batches of magic 2, the transactional id; the lowest version there is, though brokers      |
|         | advertise 0, because librdkafka takes the absence of old versions for an old broker        |
| 5       | the answer tells where the log starts                                                      |
| 7       | zstd is allowed                                                                            |
| 8       | the answer names the records at fault                                                      |
| 10      | the answer tells who leads now, so that a client need not ask for metadata                 |
| 12      | a transactional produce also adds the partition to the transaction                         |
| 13      | topics by id                                                                               |

With `acks=0` there is no answer at all.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Records, Struct, Uuid, field


class PartitionProduceData(Struct):
    index: Int32 = field("0+")
    records: Records | None = field("0+", nullable="0+")


class TopicProduceData(Struct):
    name: str = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field("0+")


class ProduceRequest(Request, key=ApiKey.PRODUCE, versions=(3, 13), flexible=9):
    transactional_id: str | None = field("3+", nullable="3+", default=None)
    acks: Int16 = field("0+")
    timeout_ms: Int32 = field("0+")
    topic_data: list[TopicProduceData] = field("0+")


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32 = field("8+")
    batch_index_error_message: str | None = field("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = field("10+", default=-1)
    leader_epoch: Int32 = field("10+", default=-1)


class PartitionProduceResponse(Struct):
    index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    base_offset: Int64 = field("0+")
    log_append_time_ms: Int64 = field("2+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    error_message: str | None = field("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = field("0-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field("0+")


class NodeEndpoint(Struct):
    node_id: Int32 = field("10+")
    host: str = field("10+")
    port: Int32 = field("10+")
    rack: str | None = field("10+", nullable="10+", default=None)


class ProduceResponse(Response, answers=ProduceRequest):
    responses: list[TopicProduceResponse] = field("0+")
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0)
