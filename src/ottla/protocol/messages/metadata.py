"""Metadata: brokers, topics, partitions and their leaders.

| version | what it brought                                                                            |
|---------|--------------------------------------------------------------------------------------------|
| 0       | an empty list of topics asks for all of them; from version 1 null does, and empty is none  |
| 1       | racks, the controller, internal topics                                                     |
| 2       | the id of the cluster                                                                      |
| 4       | a client may forbid that asking creates a topic                                            |
| 5       | replicas that are offline                                                                  |
| 7       | leader epochs                                                                              |
| 8       | what the client is allowed to do, when it asks (for the cluster: up to version 10)         |
| 10, 12  | topic ids in the answer; in the question                                                   |
| 13      | an error code for the whole answer                                                         |
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field("10+", ignorable=True)
    name: str | None = field("0+", nullable="10+")


class MetadataRequest(Request, key=ApiKey.METADATA, versions=(0, 13), flexible=9):
    topics: list[MetadataRequestTopic] | None = field("0+", nullable="1+")
    allow_auto_topic_creation: bool = field("4+", default=True)
    include_cluster_authorized_operations: bool = field("8-10")
    include_topic_authorized_operations: bool = field("8+")


class MetadataResponseBroker(Struct):
    node_id: Int32 = field("0+")
    host: str = field("0+")
    port: Int32 = field("0+")
    rack: str | None = field("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: Int16 = field("0+")
    partition_index: Int32 = field("0+")
    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: list[Int32] = field("0+")
    isr_nodes: list[Int32] = field("0+")
    offline_replicas: list[Int32] = field("5+", ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: Int16 = field("0+")
    name: str | None = field("0+", nullable="12+")
    topic_id: Uuid = field("10+", ignorable=True)
    is_internal: bool = field("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field("0+")
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


class MetadataResponse(Response, answers=MetadataRequest):
    throttle_time_ms: Int32 = field("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field("0+")
    cluster_id: str | None = field("2+", nullable="2+", default=None, ignorable=True)
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field("0+")
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", ignorable=True)
