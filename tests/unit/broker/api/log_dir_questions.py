"""Asking for replicas to be moved between log directories."""

from tests.wire_client import WireClient

from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

# Paths, each with topics and their partitions.
Asked = list[tuple[str, list[tuple[str, list[int]]]]]


def move_request(asked: Asked) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=ids) for name, ids in topics]
            )
            for path, topics in asked
        ]
    )


def move(client: WireClient, asked: Asked, version: int | None = None) -> dict[str, dict[int, int]]:
    answer = client.ask(move_request(asked), AlterReplicaLogDirsResponse, version)
    assert answer.throttle_time_ms == 0
    assert len({topic.topic_name for topic in answer.results}) == len(answer.results)
    return {
        topic.topic_name: {each.partition_index: each.error_code for each in topic.partitions}
        for topic in answer.results
    }
