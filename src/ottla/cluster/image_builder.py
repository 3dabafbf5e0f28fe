"""From nodes to images: what was read, piece by piece, becomes the next immutable image.

A topic is read as several nodes (its own, its chunks of partition state, its settings), which are written together
but may be read at different moments. So the builder keeps the pieces and shows a topic only in states that were
written:

- it is gone when its own node is gone, and only then: whoever sees it go deletes its data;
- it is new, or has more partitions, when the state of all of them has arrived too, under the same topic id;
- until then the image keeps the topic as it was.

Work is in proportion to what changed: a node that was read before, as its id of modification tells, costs nothing, and
one chunk of state costs its 100 partitions and a copy of references.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import unquote

from ottla.cluster import paths, registry
from ottla.cluster.image import (
    NO_CONTROLLER,
    NO_NODE_VERSION,
    BrokerConfigs,
    BrokerRegistration,
    ClusterImage,
    NamedConfigs,
    PartitionImage,
    TopicImage,
)
from ottla.cluster.quotas import ClientQuotas, Limits, QuotaEntity
from ottla.cluster.registry import CorruptNode, StateRecord, TopicRecord
from ottla.coordination.store import Node

_ABSENT = -1
_NO_CONFIGS: Mapping[str, str] = {}


class _TopicParts:
    """The pieces of one topic, as they were read."""

    __slots__ = ("chunks", "config_version", "configs", "record", "states")

    def __init__(self) -> None:
        self.record: TopicRecord | None = None
        self.states: dict[int, StateRecord] = {}
        self.chunks: dict[int, tuple[PartitionImage, ...]] = {}
        self.configs: Mapping[str, str] = _NO_CONFIGS
        self.config_version = NO_NODE_VERSION

    @property
    def is_empty(self) -> bool:
        return self.record is None and not self.states and self.config_version == NO_NODE_VERSION


class ImageBuilder:
    """Follows the store. `image` is the newest image; `apply` takes what was read and makes the next one."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self._taken: dict[str, int] = {}
        self._parts: dict[str, _TopicParts] = {}
        self._registrations: dict[int, BrokerRegistration] = {}
        self._live: frozenset[int] = frozenset()
        self._impaired: dict[int, BrokerRegistration] = {}
        self._quotas: dict[str, tuple[QuotaEntity, Limits, int]] = {}
        self._dirty_topics: dict[str, None] = {}
        self._brokers_changed = False
        self._quotas_changed = False
        self.problems: dict[str, CorruptNode] = {}

    def apply(self, nodes: Iterable[tuple[str, Node | None]]) -> ClusterImage:
        """Take in nodes as (path, node, or None when it is not there).

        The image stays the same object when nothing in it changed. A corrupt node goes to `problems` and what was
        known before it stays.
        """
        self._dirty_topics.clear()
        self._brokers_changed = False
        self._quotas_changed = False
        cluster = self.image
        for path, node in nodes:
            modified_id = _ABSENT if node is None else node.modified_id
            if self._taken.get(path, _ABSENT) == modified_id:
                continue
            if node is None:
                del self._taken[path]
            else:
                self._taken[path] = modified_id
            self.problems.pop(path, None)
            try:
                cluster = self._take(cluster, path, node)
            except CorruptNode as problem:
                self.problems[path] = problem
        if self._brokers_changed:
            cluster = self._with_brokers(cluster)
        if self._quotas_changed:
            cluster = self._with_quotas(cluster)
        cluster = self._with_topics(cluster)
        if cluster.topics is not self.image.topics or cluster != self.image:
            self.image = replace(cluster, version=self.image.version + 1)
        return self.image

    def _take(self, cluster: ClusterImage, path: str, node: Node | None) -> ClusterImage:
        match path.split("/")[1:]:
            case ["topics", name]:
                self._take_topic(name, node)
            case ["topics", name, chunk] if chunk.isdecimal():
                self._take_state(name, int(chunk), node)
            case ["configs", "topics", name]:
                self._take_topic_configs(name, node)
            case ["configs", "brokers", name]:
                return replace(cluster, configs=_with_broker_configs(cluster.configs, name, node))
            case ["configs", "groups", name]:
                return replace(cluster, group_configs=_with_named_configs(cluster.group_configs, name, node))
            case ["configs", "client-metrics", name]:
                return replace(cluster, client_metrics=_with_named_configs(cluster.client_metrics, name, node))
            case ["quotas", _]:
                self._take_quotas(path, node)
            case ["brokers", "ids", name]:
                self._take_broker(name, node)
            case ["brokers", "admitted"] if node is not None:
                self._brokers_changed = True
                return replace(cluster, admitted=registry.decode_admitted(node))
            case ["controller"]:
                controller_id = NO_CONTROLLER if node is None else registry.decode_controller(node).broker_id
                return replace(cluster, controller_id=controller_id)
            case ["controller_epoch"] if node is not None:
                return replace(cluster, controller_epoch=registry.decode_counter(node, "epoch"))
            case ["cluster_id"] if node is not None:
                return replace(cluster, cluster_id=registry.decode_cluster_id(node))
        return cluster

    def incomplete_topics(self) -> list[str]:
        """Topics of which pieces are missing: they are written together, so another read will find them."""
        return [
            name
            for name, parts in self._parts.items()
            if parts.record is not None and not _is_complete(parts.record, parts.states)
        ]

    def known_paths(self) -> Iterable[str]:
        """Paths of all nodes taken in."""
        return self._taken.keys()

    def _parts_of(self, name: str) -> _TopicParts:
        self._dirty_topics[name] = None
        return self._parts.setdefault(name, _TopicParts())

    def _take_topic(self, name: str, node: Node | None) -> None:
        record = None if node is None else registry.decode_topic(node)
        parts = self._parts_of(name)
        if parts.record is None or record is None or parts.record.assignment != record.assignment:
            parts.chunks.clear()
        parts.record = record

    def _take_state(self, name: str, chunk: int, node: Node | None) -> None:
        state = None if node is None else registry.decode_state(node)
        parts = self._parts_of(name)
        parts.chunks.pop(chunk, None)
        if state is None:
            parts.states.pop(chunk, None)
        else:
            parts.states[chunk] = state

    def _take_topic_configs(self, name: str, node: Node | None) -> None:
        configs = _NO_CONFIGS if node is None else registry.decode_configs(node)
        parts = self._parts_of(name)
        parts.configs = configs
        parts.config_version = NO_NODE_VERSION if node is None else node.version

    def _take_broker(self, name: str, node: Node | None) -> None:
        if node is not None:
            registration = registry.decode_broker(node)
            self._registrations[registration.node_id] = registration
        elif name.isdecimal():
            self._registrations.pop(int(name), None)
        self._brokers_changed = True

    def _take_quotas(self, path: str, node: Node | None) -> None:
        if node is None:
            self._quotas.pop(path, None)
        else:
            self._quotas[path] = (*registry.decode_quotas(node), node.version)
        self._quotas_changed = True

    def _with_quotas(self, cluster: ClusterImage) -> ClusterImage:
        limits = {entity: values for entity, values, _ in self._quotas.values()}
        versions = {entity: version for entity, _, version in self._quotas.values()}
        return replace(cluster, quotas=ClientQuotas(limits, versions))

    def _with_brokers(self, cluster: ClusterImage) -> ClusterImage:
        brokers = {
            node_id: replace(registration, is_fenced=cluster.admitted.get(node_id) != registration.epoch)
            for node_id, registration in sorted(self._registrations.items())
        }
        if brokers == cluster.brokers:
            return cluster
        live = frozenset(node_id for node_id, registration in brokers.items() if not registration.is_fenced)
        cluster = replace(cluster, brokers=brokers)
        impaired = {node_id: broker for node_id, broker in brokers.items() if broker.offline_partitions}
        if live == self._live and impaired == self._impaired:
            return cluster
        self._live, self._impaired = live, impaired
        topics = {name: self._with_offline_replicas(topic) for name, topic in cluster.topics.items()}
        return replace(cluster, topics=topics, topics_by_id={topic.topic_id: topic for topic in topics.values()})

    def _with_offline_replicas(self, topic: TopicImage) -> TopicImage:
        partitions = []
        is_changed = False
        for partition in topic.partitions:
            offline = self._offline(topic.topic_id, partition.index, partition.replicas)
            if offline != partition.offline_replicas:
                partition = PartitionImage(
                    index=partition.index,
                    leader=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    replicas=partition.replicas,
                    isr=partition.isr,
                    partition_epoch=partition.partition_epoch,
                    offline_replicas=offline,
                )
                is_changed = True
            partitions.append(partition)
        if not is_changed:
            return topic
        self._parts[topic.name].chunks.clear()
        return replace(topic, partitions=tuple(partitions))

    def _offline(self, topic_id: bytes, index: int, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Replicas on brokers that are away, or in log directories that failed."""
        if not self._impaired and self._live.issuperset(replicas):
            return ()
        return tuple(
            replica
            for replica in replicas
            if replica not in self._live
            or (replica in self._impaired and self._impaired[replica].has_offline(topic_id, index))
        )

    def _with_topics(self, cluster: ClusterImage) -> ClusterImage:
        changes: dict[str, TopicImage | None] = {}
        for name in self._dirty_topics:
            before = cluster.topics.get(name)
            after = self._build_topic(name, before)
            if after != before:
                changes[name] = after
        if not changes:
            return cluster
        topics = dict(cluster.topics)
        by_id = dict(cluster.topics_by_id)
        for name, topic in changes.items():
            previous = topics.pop(name, None)
            if previous is not None:
                del by_id[previous.topic_id]
            if topic is not None:
                topics[name] = topic
                by_id[topic.topic_id] = topic
        return replace(cluster, topics=topics, topics_by_id=by_id)

    def _build_topic(self, name: str, before: TopicImage | None) -> TopicImage | None:
        parts = self._parts[name]
        record = parts.record
        if record is None:
            if parts.is_empty:
                del self._parts[name]
            return None
        if not _is_complete(record, parts.states):
            return before if before is not None and before.topic_id == record.topic_id else None
        chunk_count = paths.chunk_count(len(record.assignment))
        partitions: list[PartitionImage] = []
        for chunk in range(chunk_count):
            images = parts.chunks.get(chunk)
            if images is None:
                images = self._build_chunk(record, chunk, parts.states[chunk], before)
                parts.chunks[chunk] = images
            partitions.extend(images)
        return TopicImage(
            name=name,
            topic_id=record.topic_id,
            partitions=tuple(partitions),
            configs=parts.configs,
            node_version=record.node_version,
            state_versions=tuple(parts.states[chunk].node_version for chunk in range(chunk_count)),
            config_version=parts.config_version,
        )

    def _build_chunk(
        self, record: TopicRecord, chunk: int, state: StateRecord, before: TopicImage | None
    ) -> tuple[PartitionImage, ...]:
        first = chunk * paths.PARTITIONS_PER_CHUNK
        known = () if before is None else before.partitions[first : first + paths.PARTITIONS_PER_CHUNK]
        images = []
        for position, partition in enumerate(state.partitions):
            replicas = record.assignment[first + position]
            image = PartitionImage(
                index=first + position,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                replicas=replicas,
                isr=partition.isr,
                partition_epoch=partition.partition_epoch,
                offline_replicas=self._offline(record.topic_id, first + position, replicas),
            )
            images.append(known[position] if position < len(known) and known[position] == image else image)
        return tuple(images)


def _is_complete(record: TopicRecord, states: Mapping[int, StateRecord]) -> bool:
    remaining = len(record.assignment)
    for chunk in range(paths.chunk_count(remaining)):
        state = states.get(chunk)
        expected = min(remaining, paths.PARTITIONS_PER_CHUNK)
        if state is None or state.topic_id != record.topic_id or len(state.partitions) != expected:
            return False
        remaining -= expected
    return True


def _with_broker_configs(configs: BrokerConfigs, name: str, node: Node | None) -> BrokerConfigs:
    if name != paths.DEFAULT_BROKER and not name.isdecimal():
        return configs
    key = None if name == paths.DEFAULT_BROKER else int(name)
    by_broker = {other: values for other, values in configs.by_broker.items() if other != key}
    versions = {other: version for other, version in configs.versions.items() if other != key}
    if node is not None:
        by_broker[key] = registry.decode_configs(node)
        versions[key] = node.version
    return BrokerConfigs(by_broker, versions)


def _with_named_configs(configs: NamedConfigs, escaped_name: str, node: Node | None) -> NamedConfigs:
    name = unquote(escaped_name)
    by_name = {other: values for other, values in configs.by_name.items() if other != name}
    versions = {other: version for other, version in configs.versions.items() if other != name}
    if node is not None:
        by_name[name] = registry.decode_configs(node)
        versions[name] = node.version
    return NamedConfigs(by_name, versions)
