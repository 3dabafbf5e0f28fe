"""AlterReplicaLogDirs (key 34): move replicas between the log directories of this broker. Version 2 is flexible.

| asked for                                           | answer                                                   |
|-----------------------------------------------------|----------------------------------------------------------|
| a topic whose name is too long for a future log's   | INVALID_TOPIC_EXCEPTION                                  |
| another directory                                   | the move begins, in place of one that was under way      |
| the directory that the replica is in                | a move that was under way is called off                  |
| a path that is none of the `log.dirs`, letter for letter | LOG_DIR_NOT_FOUND                                   |
| a directory that failed, or a replica in one        | KAFKA_STORAGE_ERROR                                      |
| a topic or partition that does not exist            | UNKNOWN_TOPIC_OR_PARTITION, and remembered for its making |

A partition that is named twice goes where it was named last. DescribeLogDirs shows how far a move has got.
"""

import logging
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)


@serves(AlterReplicaLogDirsRequest)
async def handle(
    broker: "Broker", context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                wanted.setdefault(topic.name, {})[index] = directory.path
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=await _move(broker, name, index, path)
                    )
                    for index, path in paths.items()
                ],
            )
            for name, paths in wanted.items()
        ]
    )


async def _move(broker: "Broker", topic: str, index: int, path: str) -> ErrorCode:
    try:
        await broker.replicas.move(topic, index, path)
    except KafkaError as error:
        logger.info("%r, partition %d, is not moved to %r: %s", topic, index, path, error)
        return error.code
    return ErrorCode.NONE
