"""CreateTopics: create topics, or check that it would work.

From version 4, -1 stands for the broker's default number of partitions and replicas; 5 returns the resulting configs, 6
knows throttling as an error, 7 returns topic ids.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, Uuid, field


class CreatableReplicaAssignment(Struct):
    partition_index: Int32 = field("0+")
    broker_ids: list[Int32] = field("0+")


class CreatableTopicConfig(Struct):
    name: str = field("0+")
    value: str | None = field("0+", nullable="0+")


class CreatableTopic(Struct):
    name: str = field("0+")
    num_partitions: Int32 = field("0+")
    replication_factor: Int16 = field("0+")
    assignments: list[CreatableReplicaAssignment] = field("0+")
    configs: list[CreatableTopicConfig] = field("0+")


class CreateTopicsRequest(Request, key=ApiKey.CREATE_TOPICS, versions=(2, 7), flexible=5):
    topics: list[CreatableTopic] = field("0+")
    timeout_ms: Int32 = field("0+", default=60000)
    validate_only: bool = field("1+")


class CreatableTopicConfigs(Struct):
    name: str = field("5+")
    value: str | None = field("5+", nullable="5+")
    read_only: bool = field("5+")
    config_source: Int8 = field("5+", default=-1, ignorable=True)
    is_sensitive: bool = field("5+")


class CreatableTopicResult(Struct):
    name: str = field("0+")
    topic_id: Uuid = field("7+", ignorable=True)
    error_code: Int16 = field("0+")
    error_message: str | None = field("1+", nullable="0+", ignorable=True)
    topic_config_error_code: Int16 = field("5+", tag=0, ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field("5+", nullable="5+", ignorable=True)


class CreateTopicsResponse(Response, answers=CreateTopicsRequest):
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: list[CreatableTopicResult] = field("0+")
