"""What a client knows of a cluster at one moment. Immutable: an answer about metadata makes a new one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Node:
    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """`leader` is NO_LEADER while there is none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """`partitions` are by number, without gaps. `topic_id` is all zeros where the broker does not tell."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionInfo, ...]
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """`version` rises with every change. Topics that nobody asked for are not in it."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicInfo] = field(default_factory=lambda: MappingProxyType({}))
    names_by_id: Mapping[bytes, str] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0

    def partition(self, topic: str, partition: int) -> PartitionInfo | None:
        info = self.topics.get(topic)
        return info.partitions[partition] if info is not None and 0 <= partition < len(info.partitions) else None

    def leader_of(self, topic: str, partition: int) -> int:
        """NO_LEADER when there is none, or none is known."""
        info = self.partition(topic, partition)
        return NO_LEADER if info is None or info.leader not in self.nodes else info.leader
