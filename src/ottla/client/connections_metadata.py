"""From answers about metadata to what is known of the cluster. Sans-IO.

What must stay true, as in Kafka's own clients:
- The leader epoch of a partition never goes back while the topic is the same: an answer from a broker that lags behind
  does not undo what a better informed one said. A topic with another id is another topic, and its epochs start anew.
- A topic that an answer has an error for is not in the cluster; its code is in `errors`.
- An answer about some topics leaves the others as they were.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ottla.client.cluster import NO_LEADER, Cluster, Node, PartitionInfo, TopicInfo
from ottla.client.errors import InvalidAnswer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

NO_TOPIC_ID = bytes(16)
NO_EPOCH = -1

WORTH_ASKING_AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_MOST_PARTITIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Known:
    """A cluster, and the error codes of the topics that it could not tell about."""

    cluster: Cluster = field(default_factory=Cluster)
    errors: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    is_incomplete: bool = False
    """Whether something of it will be known better soon: a leader is being elected, a topic created."""


def learned(old: Known, answer: MetadataResponse, *, only_some_topics: bool) -> Known:
    """What is known after this answer."""
    nodes = {
        broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in sorted(answer.brokers, key=lambda broker: broker.node_id)
    }
    topics: dict[str, TopicInfo] = dict(old.cluster.topics) if only_some_topics else {}
    errors: dict[str, int] = dict(old.errors) if only_some_topics else {}
    is_incomplete = False
    for topic in answer.topics:
        name = topic.name or old.cluster.names_by_id.get(topic.topic_id)
        if name is None:
            continue
        errors.pop(name, None)
        topics.pop(name, None)
        if topic.error_code:
            errors[name] = topic.error_code
            is_incomplete |= topic.error_code in WORTH_ASKING_AGAIN
            continue
        info, has_all_leaders = _topic(old.cluster.topics.get(name), name, topic)
        topics[name] = info
        is_incomplete |= not has_all_leaders
    cluster = Cluster(
        cluster_id=answer.cluster_id if answer.cluster_id is not None else old.cluster.cluster_id,
        controller_id=answer.controller_id,
        nodes=MappingProxyType(nodes),
        topics=MappingProxyType(topics),
        names_by_id=_names_by_id(topics.values()),
        version=old.cluster.version + 1,
    )
    return Known(cluster, MappingProxyType(errors), is_incomplete)


def without_topics(old: Known, names: Iterable[str]) -> Known:
    """The same without these topics, which nobody wants to know about any more."""
    gone = set(names)
    topics = {name: info for name, info in old.cluster.topics.items() if name not in gone}
    errors = {name: code for name, code in old.errors.items() if name not in gone}
    if len(topics) == len(old.cluster.topics) and len(errors) == len(old.errors):
        return old
    cluster = replace(
        old.cluster,
        topics=MappingProxyType(topics),
        names_by_id=_names_by_id(topics.values()),
        version=old.cluster.version + 1,
    )
    return Known(cluster, MappingProxyType(errors), old.is_incomplete)


def with_leader(
    old: Known, topic: str, partition: int, leader: int, leader_epoch: int, endpoints: Iterable[Node]
) -> Known:
    """The same with a leader that a broker named when it refused to be it; `old` where that is no news."""
    info = old.cluster.topics.get(topic)
    current = old.cluster.partition(topic, partition)
    if info is None or current is None or leader < 0 or leader_epoch <= current.leader_epoch:
        return old
    nodes = {**old.cluster.nodes, **{node.node_id: node for node in endpoints}}
    if leader not in nodes:
        return old
    partitions = list(info.partitions)
    partitions[partition] = replace(current, leader=leader, leader_epoch=leader_epoch)
    topics = {**old.cluster.topics, topic: replace(info, partitions=tuple(partitions))}
    cluster = replace(
        old.cluster,
        nodes=MappingProxyType(dict(sorted(nodes.items()))),
        topics=MappingProxyType(topics),
        version=old.cluster.version + 1,
    )
    return Known(cluster, old.errors, old.is_incomplete)


def _names_by_id(topics: Iterable[TopicInfo]) -> Mapping[bytes, str]:
    return MappingProxyType({info.topic_id: info.name for info in topics if info.topic_id != NO_TOPIC_ID})


def _topic(old: TopicInfo | None, name: str, topic: MetadataResponseTopic) -> tuple[TopicInfo, bool]:
    """The topic, and whether all its partitions have a leader."""
    topic_id = bytes(topic.topic_id)
    is_same = old is not None and (old.topic_id == topic_id or NO_TOPIC_ID in (old.topic_id, topic_id))
    by_number = {partition.partition_index: partition for partition in topic.partitions}
    count = max(by_number, default=-1) + 1
    if count > _MOST_PARTITIONS or min(by_number, default=0) < 0:
        raise InvalidAnswer(f"topic {name} is said to have a partition {count - 1}")
    partitions = []
    for number in range(count):
        before = old.partitions[number] if old is not None and is_same and number < len(old.partitions) else None
        partitions.append(_partition(before, number, by_number.get(number)))
    has_all_leaders = all(partition.leader != NO_LEADER for partition in partitions)
    return TopicInfo(name, topic_id, tuple(partitions), topic.is_internal), has_all_leaders


def _partition(before: PartitionInfo | None, number: int, told: MetadataResponsePartition | None) -> PartitionInfo:
    if told is None:
        return before or PartitionInfo(number, NO_LEADER, NO_EPOCH, (), ())
    if before is not None and NO_EPOCH < told.leader_epoch < before.leader_epoch:
        return before
    return PartitionInfo(
        number,
        told.leader_id if told.leader_id >= 0 else NO_LEADER,
        told.leader_epoch,
        tuple(told.replica_nodes),
        tuple(told.isr_nodes),
        tuple(told.offline_replicas),
    )
