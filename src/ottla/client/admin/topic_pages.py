"""Descriptions of topics: in pages where brokers have DescribeTopicPartitions, else from Metadata."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ottla.client.admin.call import Call, Outcomes
from ottla.client.admin.failures import failure
from ottla.client.errors import OttlaError, UnsupportedByBroker
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ottla.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from ottla.protocol.uuids import uuid_to_text

PARTITIONS_PER_PAGE = 2000
TOPICS_PER_REQUEST = 500


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`leader` is -1 where there is none. `eligible_leaders` may lead although they are not in sync; empty where the
    broker does not tell."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()
    eligible_leaders: tuple[int, ...] = ()

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


async def described_topics(call: Call, names: Sequence[str]) -> Outcomes[str, TopicDescription]:
    """One outcome for each name."""

    async def ask(piece: Sequence[str]) -> Outcomes[str, TopicDescription]:
        try:
            return await _paged(call, piece)
        except UnsupportedByBroker:
            return {name: _from_metadata(name, topic) for name, topic in (await call.topics(piece)).items()}

    return await call.in_pieces(names, ask, TOPICS_PER_REQUEST)


async def _paged(call: Call, names: Sequence[str]) -> Outcomes[str, TopicDescription]:
    """All pages of these topics. Kafka sorts them by name; a cursor names the first partition that is not told yet."""
    found: dict[str, TopicDescription | OttlaError] = {}
    cursor: Cursor | None = None
    wanted = sorted(names)
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in wanted],
            response_partition_limit=PARTITIONS_PER_PAGE,
            cursor=cursor,
        )
        answer = await call.to_any(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            if topic.name is not None:
                found[topic.name] = _joined(found.get(topic.name), topic.name, topic)
        ahead = answer.next_cursor
        if ahead is None or not _is_further(cursor, ahead):
            return found
        cursor = ahead
        wanted = [name for name in wanted if name >= ahead.topic_name]


def _is_further(cursor: Cursor | None, ahead: Cursor) -> bool:
    """A broker that sends the same page again must not be asked for ever."""
    return cursor is None or (ahead.topic_name, ahead.partition_index) > (cursor.topic_name, cursor.partition_index)


def _joined(
    before: TopicDescription | OttlaError | None, name: str, topic: DescribeTopicPartitionsResponseTopic
) -> TopicDescription | OttlaError:
    if topic.error_code:
        return failure(topic.error_code, None, name)
    partitions = tuple(_partition(partition) for partition in topic.partitions)
    if isinstance(before, TopicDescription):
        return replace(before, partitions=before.partitions + partitions)
    return TopicDescription(name, uuid_to_text(topic.topic_id), topic.is_internal, partitions)


def _partition(partition: DescribeTopicPartitionsResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        tuple(partition.eligible_leader_replicas or ()),
    )


def _from_metadata(name: str, topic: MetadataResponseTopic) -> TopicDescription | OttlaError:
    if topic.error_code:
        return failure(topic.error_code, None, name)
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        name, uuid_to_text(topic.topic_id), topic.is_internal, tuple(_plain_partition(one) for one in partitions)
    )


def _plain_partition(partition: MetadataResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )
