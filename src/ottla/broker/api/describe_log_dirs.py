"""DescribeLogDirs (key 35): the log directories of this broker, how full their disks are, and what each replica takes.

| version | what changed                                                    |
|---------|-----------------------------------------------------------------|
| 1       | (the first that is still spoken)                                |
| 2       | flexible                                                        |
| 3       | an error of the whole request                                   |
| 4       | size and free room of the disk (KIP-827)                        |
| 5       | directories that are cordoned off (KIP-1066); none is here      |

A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing else. Topics and partitions that are not here
are left out: this is what tools expect that ask every broker. A log on its way to another directory is listed in both:
the copy as a future one, with the offsets that it is behind.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.log.directory import LogDirectory
from ottla.log.files import TopicPartition
from ottla.log.log import Log
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)

LOGS_PER_TURN = 500


@serves(DescribeLogDirsRequest, abandon_on_close=True)
async def handle(broker: "Broker", context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = _wanted(request)
    return DescribeLogDirsResponse(
        results=[await _describe(broker, directory, wanted) for directory in broker.logs.directories]
    )


def _wanted(request: DescribeLogDirsRequest) -> set[TopicPartition] | None:
    """The partitions asked for; None for all of them."""
    if request.topics is None:
        return None
    return {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}


async def _describe(
    broker: "Broker", directory: LogDirectory, wanted: set[TopicPartition] | None
) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path)
    if directory.failure is None:
        try:
            result.total_bytes, result.usable_bytes = await broker.logs.space(directory)
        except OSError as error:
            logger.error("the disk of %s does not say how full it is: %s", directory.path, error)
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            return result
    if directory.failure is not None:
        return DescribeLogDirsResult(log_dir=directory.path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for number, (topic_partition, replica) in enumerate(_replicas(broker, directory), 1):
        if not number % LOGS_PER_TURN:
            await asyncio.sleep(0)
        if wanted is None or topic_partition in wanted:
            topic = topics.setdefault(topic_partition.topic, DescribeLogDirsTopic(name=topic_partition.topic))
            topic.partitions.append(replica)
    result.topics = list(topics.values())
    return result


def _replicas(broker: "Broker", directory: LogDirectory) -> Iterator[tuple[TopicPartition, DescribeLogDirsPartition]]:
    for log in broker.logs.all_logs():
        if log.directory is directory:
            yield log.topic_partition, _replica(log.topic_partition.partition, log)
    for move in broker.logs.moves.all():
        if move.directory is directory and move.log.directory is not directory:
            topic_partition = move.log.topic_partition
            yield (
                topic_partition,
                DescribeLogDirsPartition(
                    partition_index=topic_partition.partition,
                    partition_size=move.size_bytes,
                    offset_lag=move.offset_lag,
                    is_future_key=True,
                ),
            )


def _replica(index: int, log: Log) -> DescribeLogDirsPartition:
    """The lag is that of a log which is behind its high watermark, as only a copy under way is."""
    return DescribeLogDirsPartition(
        partition_index=index,
        partition_size=log.size_bytes,
        offset_lag=max(log.high_watermark - log.log_end_offset, 0),
    )
