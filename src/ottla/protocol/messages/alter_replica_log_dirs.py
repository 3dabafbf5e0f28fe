"""AlterReplicaLogDirs: move replicas between the log directories of a broker."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, field


class AlterReplicaLogDirTopic(Struct):
    name: str = field("0+")
    partitions: list[Int32] = field("0+")


class AlterReplicaLogDir(Struct):
    path: str = field("0+")
    topics: list[AlterReplicaLogDirTopic] = field("0+")


class AlterReplicaLogDirsRequest(Request, key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(1, 2), flexible=2):
    dirs: list[AlterReplicaLogDir] = field("0+")


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field("0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = field("0+")


class AlterReplicaLogDirsResponse(Response, answers=AlterReplicaLogDirsRequest):
    throttle_time_ms: Int32 = field("0+")
    results: list[AlterReplicaLogDirTopicResult] = field("0+")
