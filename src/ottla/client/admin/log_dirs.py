"""Log directories of brokers, and moves of replicas between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Outcomes, as_partitions, by_topic
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class TopicPartitionReplica(NamedTuple):
    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """`offset_lag` is how far the replica is behind; of a future one, behind the one that it will replace."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A directory; `error` is set where it is out of use. Bytes are -1 where the broker does not tell them.

    `replicas` are those that are in use, `futures` those on their way into this directory.
    """

    path: str
    replicas: Mapping[TopicPartition, ReplicaInfo]
    futures: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False
    error: OttlaError | None = None

    @property
    def size_bytes(self) -> int:
        return sum(info.size_bytes for info in (*self.replicas.values(), *self.futures.values()))


class LogDirsAdmin(AdminPart):
    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[tuple[str, int]] | None = None,
        timeout: float | None = None,
    ) -> Results[int, dict[str, LogDir]]:
        """The directories of each broker by path, of all brokers where none are named, with the replicas in them."""
        call = self._call(timeout)
        topics = None
        if partitions is not None:
            topics = [
                DescribableLogDirTopic(topic=name, partitions=numbers)
                for name, numbers in by_topic(as_partitions(partitions)).items()
            ]

        async def ask(node_id: int, keys: Sequence[int]) -> Outcomes[int, dict[str, LogDir]]:
            answer = await call.to(node_id, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)
            if answer.error_code:
                raise failure(answer.error_code, None, f"broker {node_id}")
            return {node_id: {one.log_dir: _log_dir(one) for one in answer.results}}

        async def attempt(nodes: Sequence[int]) -> Outcomes[int, dict[str, LogDir]]:
            return await call.by_broker({node_id: [node_id] for node_id in nodes}, ask)

        nodes = sorted(call.network.cluster.nodes) if brokers is None else list(brokers)
        return await call.settle(nodes, attempt)

    async def alter_replica_log_dirs(
        self, targets: Mapping[tuple[str, int, int], str], *, timeout: float | None = None
    ) -> Results[TopicPartitionReplica, None]:
        """Move replicas, given as (topic, partition, broker), to other directories of their brokers.

        The move goes on after this returns: `describe_log_dirs` shows it among the `futures` until it has arrived.
        """
        wanted = {TopicPartitionReplica(*replica): path for replica, path in targets.items()}
        call = self._call(timeout)

        async def ask(node_id: int, keys: Sequence[TopicPartitionReplica]) -> Outcomes[TopicPartitionReplica, None]:
            dirs: dict[str, list[TopicPartition]] = {}
            for key in keys:
                dirs.setdefault(wanted[key], []).append(TopicPartition(key.topic, key.partition))
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDir(
                        path=path,
                        topics=[
                            AlterReplicaLogDirTopic(name=name, partitions=numbers)
                            for name, numbers in by_topic(partitions).items()
                        ],
                    )
                    for path, partitions in dirs.items()
                ]
            )
            answer = await call.to(node_id, request, AlterReplicaLogDirsResponse)
            return {
                (key := TopicPartitionReplica(topic.topic_name, result.partition_index, node_id)): failure(
                    result.error_code, None, key
                )
                if result.error_code
                else None
                for topic in answer.results
                for result in topic.partitions
            }

        async def attempt(keys: Sequence[TopicPartitionReplica]) -> Outcomes[TopicPartitionReplica, None]:
            of_brokers: dict[int, list[TopicPartitionReplica]] = {}
            for key in keys:
                of_brokers.setdefault(key.broker, []).append(key)
            return await call.by_broker(of_brokers, ask)

        return await call.settle(wanted, attempt)


def _log_dir(one: DescribeLogDirsResult) -> LogDir:
    replicas: dict[TopicPartition, ReplicaInfo] = {}
    futures: dict[TopicPartition, ReplicaInfo] = {}
    for topic in one.topics:
        for partition in topic.partitions:
            kind = futures if partition.is_future_key else replicas
            kind[TopicPartition(topic.name, partition.partition_index)] = ReplicaInfo(
                partition.partition_size, partition.offset_lag, partition.is_future_key
            )
    return LogDir(
        one.log_dir,
        {key: replicas[key] for key in sorted(replicas)},
        {key: futures[key] for key in sorted(futures)},
        one.total_bytes,
        one.usable_bytes,
        one.is_cordoned,
        failure(one.error_code, None, one.log_dir) if one.error_code != ErrorCode.NONE else None,
    )
