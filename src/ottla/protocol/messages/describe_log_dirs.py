"""DescribeLogDirs: log directories of a broker and what each replica in them takes.

Version 3 added an error code for the whole answer, 4 the size of the disk, 5 directories that are cordoned off.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class DescribableLogDirTopic(Struct):
    topic: str = field("0+")
    partitions: list[Int32] = field("0+")


class DescribeLogDirsRequest(Request, key=ApiKey.DESCRIBE_LOG_DIRS, versions=(1, 5), flexible=2):
    topics: list[DescribableLogDirTopic] | None = field("0+", nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: Int32 = field("0+")
    partition_size: Int64 = field("0+")
    offset_lag: Int64 = field("0+")
    is_future_key: bool = field("0+")


class DescribeLogDirsTopic(Struct):
    name: str = field("0+")
    partitions: list[DescribeLogDirsPartition] = field("0+")


class DescribeLogDirsResult(Struct):
    error_code: Int16 = field("0+")
    log_dir: str = field("0+")
    topics: list[DescribeLogDirsTopic] = field("0+")
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: bool = field("5+", ignorable=True)


class DescribeLogDirsResponse(Response, answers=DescribeLogDirsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field("0+")
