"""Whatever happens to a cluster, in whatever order: what its images must always show.

Topics are created, deleted and grown, brokers die, return, shut down; each decision is applied to a tree of nodes that
refuses what does not hold, as a store would.
"""

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.cluster.harness import SeededIds, Tree, check_partitions, registration_of

from ottla.cluster import paths, registry
from ottla.cluster.elections import admitted_after, elect_all
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.cluster.requests import ControllerSettings, NewPartitions, NewTopic
from ottla.cluster.topics import TopicDecisions
from ottla.coordination.store import Operation, Set
from ottla.protocol.errors import ErrorCode

NODE_IDS = (1, 2, 3, 4)
NAMES = ("a", "b", "c.d", "c_d", "e")
SETTINGS = ControllerSettings(num_partitions=3, default_replication_factor=2)


class Cluster(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.tree = Tree(brokers=NODE_IDS)
        self.decisions = TopicDecisions(SETTINGS, lambda configs: None, SeededIds(seed), controller_epoch=1)
        self.ids_seen: set[bytes] = set()
        self.epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
        self.before: ClusterImage = self.tree.image

    def carry_out(self, operations: Sequence[Operation]) -> None:
        if operations:
            self.tree.apply(operations)

    @rule(
        name=st.sampled_from(NAMES),
        partitions=st.sampled_from([-1, 1, 2, 7, 99, 100, 101, 205]),
        factor=st.sampled_from([-1, 1, 2, 3, 4]),
    )
    def create_topic(self, name: str, partitions: int, factor: int) -> None:
        image = self.tree.image
        [decision] = self.decisions.create_topics(image, [NewTopic(name, partitions, factor)], {})
        self.carry_out(decision.operations)
        result = decision.result
        if result.error == ErrorCode.NONE:
            assert result.topic_id not in self.ids_seen, "no id is used twice, also not after a deletion"
            self.ids_seen.add(result.topic_id)
            topic = self.tree.image.topics[name]
            assert len(topic.partitions) == (3 if partitions == -1 else partitions)
            assert all(partition.leader != NO_LEADER for partition in topic.partitions)
            metric_names = [name.replace(".", "_") for name in self.tree.image.topics]
            assert len(metric_names) == len(set(metric_names))
        else:
            assert self.tree.image is image
            collides = any(other.replace(".", "_") == name.replace(".", "_") for other in image.topics)
            too_few = len(image.active_brokers()) < (2 if factor == -1 else factor)
            assert collides or too_few, result.message

    @rule(name=st.sampled_from(NAMES), by_id=st.booleans())
    def delete_topic(self, name: str, by_id: bool) -> None:
        topic = self.tree.image.topics.get(name)
        asked = topic.topic_id if topic is not None and by_id else name
        [decision] = self.decisions.delete_topics(self.tree.image, [asked], {})
        self.carry_out(decision.operations)
        assert (decision.result.error == ErrorCode.NONE) == (topic is not None)
        assert name not in self.tree.image.topics
        assert not any(path.split("/")[2:3] == [name] for path in self.tree.nodes if path.startswith("/topics/"))

    @rule(name=st.sampled_from(NAMES), count=st.sampled_from([2, 8, 99, 101, 150, 300]))
    def grow_topic(self, name: str, count: int) -> None:
        topic = self.tree.image.topics.get(name)
        [decision] = self.decisions.create_partitions(self.tree.image, [NewPartitions(name, count)], {})
        self.carry_out(decision.operations)
        if decision.result.error == ErrorCode.NONE:
            assert topic is not None
            grown = self.tree.image.topics[name].partitions
            assert len(grown) == count
            assert grown[: len(topic.partitions)] == topic.partitions

    @rule(node_id=st.sampled_from(NODE_IDS))
    def broker_dies(self, node_id: int) -> None:
        if node_id in self.tree.image.brokers:
            self.tree.deregister(node_id)

    @rule(node_id=st.sampled_from(NODE_IDS))
    def broker_starts(self, node_id: int) -> None:
        if node_id not in self.tree.image.brokers:
            self.tree.register(node_id)

    @rule(node_id=st.sampled_from(NODE_IDS))
    def broker_restarts_unseen(self, node_id: int) -> None:
        if node_id in self.tree.image.brokers:
            self.tree.deregister(node_id)
            self.tree.register(node_id)

    @rule(node_id=st.sampled_from(NODE_IDS))
    def broker_begins_to_shut_down(self, node_id: int) -> None:
        if node_id in self.tree.image.brokers:
            data = registry.encode_broker(registration_of(node_id, is_shutting_down=True))
            self.tree.put(paths.broker(node_id), data)

    @rule(index=st.integers(0, 400), keep=st.integers(1, 4))
    @precondition(lambda self: self.tree.image.topics)
    def leader_changes_its_isr(self, index: int, keep: int) -> None:
        """As leaders do: followers that are alive come into the ISR or fall out of it."""
        image = self.tree.image
        topic = list(image.topics.values())[index % len(image.topics)]
        partition = topic.partitions[index % len(topic.partitions)]
        if partition.leader == NO_LEADER or partition.leader not in image.brokers:
            return
        alive = [node_id for node_id in partition.replicas if node_id in image.brokers and node_id != partition.leader]
        isr = (partition.leader, *alive[: keep - 1])
        chunk = partition.index // paths.PARTITIONS_PER_CHUNK
        first = chunk * paths.PARTITIONS_PER_CHUNK
        states = list(topic.partitions[first : first + paths.PARTITIONS_PER_CHUNK])
        states[partition.index - first] = type(partition)(
            partition.index,
            partition.leader,
            partition.leader_epoch,
            partition.replicas,
            isr,
            partition.partition_epoch + 1,
        )
        data = registry.encode_state(topic.topic_id, 1, states)
        self.tree.apply([Set(paths.topic_state(topic.name, chunk), data, topic.state_versions[chunk])])

    @rule()
    def controller_deals_with_brokers(self) -> None:
        self.tree.apply(elect_all(self.tree.image, SETTINGS, controller_epoch=1))
        self.tree.put(paths.ADMITTED_BROKERS, registry.encode_admitted(admitted_after(self.tree.image)))
        image = self.tree.image
        for topic in image.topics.values():
            for partition in topic.partitions:
                if partition.leader == NO_LEADER:
                    able = {node_id for node_id, broker in image.brokers.items() if broker.is_active}
                    assert able.isdisjoint(partition.isr), "someone in sync could lead"
                else:
                    assert partition.leader in image.brokers
        assert list(elect_all(image, SETTINGS, controller_epoch=1)) == [], "nothing is left to do"

    @invariant()
    def images_hold(self) -> None:
        if not hasattr(self, "tree"):
            return
        image = self.tree.image
        check_partitions(image)
        assert self.tree.builder.incomplete_topics() == []
        assert self.tree.builder.problems == {}
        assert image.version >= self.before.version
        for topic in image.topics.values():
            for partition in topic.partitions:
                key = (topic.topic_id, partition.index)
                leader_epoch, partition_epoch = self.epochs.get(key, (0, 0))
                assert partition.leader_epoch >= leader_epoch
                assert partition.partition_epoch >= partition_epoch
                previous = self.before.topics_by_id.get(topic.topic_id)
                if previous is not None and partition.index < len(previous.partitions):
                    old = previous.partitions[partition.index]
                    assert old.replicas == partition.replicas
                    if (old.leader, old.isr) != (partition.leader, partition.isr):
                        assert partition.partition_epoch > old.partition_epoch
                    if old.leader != partition.leader:
                        assert partition.leader_epoch > old.leader_epoch
                self.epochs[key] = (partition.leader_epoch, partition.partition_epoch)
        self.before = image


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
