"""The cluster as one immutable value.

An image never changes; a newer one shares with it whatever stayed the same, so two images are compared by identity:
a `TopicImage` that is the same object is the same topic in the same state.

Epochs, and what must hold of them:

- `leader_epoch` grows whenever a leader is elected or lost, and never goes back;
- `partition_epoch` grows with every change of a partition, and never goes back;
- the leader is in the ISR and the ISR is among the replicas; a partition without a leader has `NO_LEADER` and keeps
  the ISR it had, since only those replicas have all committed records;
- a broker's `epoch` is the commit that registered it: a restart makes it larger.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ottla.cluster.quotas import ClientQuotas

NO_LEADER = -1
NO_CONTROLLER = -1
NO_NODE_VERSION = -1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker listens: Kafka's `NAME://host:port` with the security protocol behind the name."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker that is alive.

    It is fenced until a controller has admitted it: it leads nothing and gets no new replicas before. Some of its
    replicas may be offline, since their log directory failed: `offline_partitions`, by topic id.
    """

    node_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    epoch: int
    incarnation_id: bytes
    is_fenced: bool = False
    is_shutting_down: bool = False
    offline_partitions: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and be given replicas."""
        return not (self.is_fenced or self.is_shutting_down)

    def has_offline(self, topic_id: bytes, index: int) -> bool:
        """Whether its replica of a partition, if it has one, is out of use."""
        return index in self.offline_partitions.get(topic_id, ())

    def endpoint(self, listener_name: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition. The first of `replicas` is the preferred leader."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic. `configs` has what the topic sets itself, by Kafka's dotted names.

    The versions are those of the nodes it was read from, for compare-and-set: `node_version` of the topic,
    `state_versions` of its chunks of partition state, `config_version` (`NO_NODE_VERSION` without such a node).
    """

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    node_version: int = 0
    state_versions: tuple[int, ...] = ()
    config_version: int = NO_NODE_VERSION

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True)
class BrokerConfigs:
    """Dynamic settings of brokers, with the versions of the nodes; the key None stands for all brokers."""

    by_broker: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    versions: Mapping[int | None, int] = field(default_factory=dict)

    @property
    def defaults(self) -> Mapping[str, str]:
        return self.by_broker.get(None, {})

    def of(self, node_id: int) -> Mapping[str, str]:
        """What applies to one broker: its own settings over the ones for all."""
        return {**self.defaults, **self.by_broker.get(node_id, {})}


@dataclass(frozen=True, slots=True)
class NamedConfigs:
    """What groups, or subscriptions to client metrics, set themselves, by name, with the versions of the nodes."""

    by_name: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Everything a broker knows of its cluster. `version` counts the images of this process only."""

    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    admitted: Mapping[int, int] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[bytes, TopicImage] = field(default_factory=dict)
    configs: BrokerConfigs = field(default_factory=BrokerConfigs)
    group_configs: NamedConfigs = field(default_factory=NamedConfigs)
    client_metrics: NamedConfigs = field(default_factory=NamedConfigs)
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    version: int = 0

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        image = self.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        return image.partitions[index]

    def active_brokers(self) -> list[BrokerRegistration]:
        return [registration for _, registration in sorted(self.brokers.items()) if registration.is_active]


def changed_topics(old: ClusterImage, new: ClusterImage) -> Iterator[tuple[TopicImage | None, TopicImage | None]]:
    """Pairs (before, after) of topics that differ; None for one that is new or gone.

    A topic that was deleted and created again under its name comes as gone first, then as new.
    """
    if old.topics is new.topics:
        return
    for name, before in old.topics.items():
        after = new.topics.get(name)
        if after is None or after.topic_id != before.topic_id:
            yield before, None
    for name, after in new.topics.items():
        previous = old.topics.get(name)
        if previous is after:
            continue
        yield (previous if previous is not None and previous.topic_id == after.topic_id else None), after
