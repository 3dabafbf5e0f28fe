"""Images follow the nodes, show only states that were written, and share what stayed the same."""

import itertools
from dataclasses import replace

import pytest
from tests.unit.cluster.harness import SeededIds, Tree, check_partitions

from ottla.cluster import paths, registry
from ottla.cluster.image import ClusterImage, TopicImage, changed_topics
from ottla.cluster.image_builder import ImageBuilder
from ottla.cluster.requests import ControllerSettings, NewPartitions, NewTopic
from ottla.cluster.topics import TopicDecisions
from ottla.coordination.store import Create, Delete, Node, Operation, Set

DECISIONS = TopicDecisions(ControllerSettings(), lambda configs: None, SeededIds(5), controller_epoch=1)


def creation(image: ClusterImage, *requests: NewTopic) -> list[Operation]:
    return [operation for decision in DECISIONS.create_topics(image, requests, {}) for operation in decision.operations]


def deletion(image: ClusterImage, name: str) -> list[Operation]:
    [decision] = DECISIONS.delete_topics(image, [name], {})
    return list(decision.operations)


def node(operation: Operation, version: int = 0, modified_id: int = 1000) -> Node:
    assert isinstance(operation, (Create, Set))
    return Node(operation.path, operation.data, version, 1, modified_id, False)


def test_a_topic_appears_as_it_was_created_and_goes_when_it_is_deleted() -> None:
    tree = Tree(brokers=[1, 2, 3])
    tree.apply(creation(tree.image, NewTopic("orders", 250, 3, configs={"retention.ms": "5"})))
    topic = tree.image.topics["orders"]
    assert [partition.index for partition in topic.partitions] == list(range(250))
    assert all(partition.leader == partition.replicas[0] == partition.isr[0] for partition in topic.partitions)
    assert topic.configs == {"retention.ms": "5"}
    assert (topic.state_versions, topic.config_version, topic.replication_factor) == ((0, 0, 0), 0, 3)
    assert tree.image.partition("orders", 249) is topic.partitions[249]
    assert tree.image.partition("orders", 250) is None
    check_partitions(tree.image)
    tree.apply(deletion(tree.image, "orders"))
    assert (tree.image.topics, tree.image.topics_by_id) == ({}, {})


def test_nodes_of_a_new_topic_may_arrive_in_any_order_and_show_it_when_complete() -> None:
    tree = Tree(brokers=[1])
    operations = creation(tree.image, NewTopic("t", 150, 1, configs={"a": "b"}))
    assert len(operations) == 4
    needed = {paths.topic("t"), paths.topic_state("t", 0), paths.topic_state("t", 1)}
    for order in itertools.permutations(operations):
        builder = ImageBuilder()
        seen = set()
        for operation in order:
            image = builder.apply([(operation.path, node(operation))])
            seen.add(operation.path)
            assert ("t" in image.topics) == (needed <= seen)
        assert builder.image.topics["t"].configs == {"a": "b"}


def test_a_topic_whose_pieces_do_not_fit_yet_stays_as_it_was() -> None:
    """Whoever sees a topic go deletes its data, so half-read changes must never look like that."""
    tree = Tree(brokers=[1])
    tree.apply(creation(tree.image, NewTopic("t", 90, 1)))
    before = tree.image.topics["t"]
    [decision] = DECISIONS.create_partitions(tree.image, [NewPartitions("t", 120)], {})
    for order in itertools.permutations(decision.operations):
        builder = ImageBuilder()
        builder.apply(tree.nodes.items())
        for position, operation in enumerate(order):
            image = builder.apply([(operation.path, node(operation, version=1))])
            topic = image.topics["t"]
            complete = position == len(order) - 1
            assert len(topic.partitions) == (120 if complete else 90)
            assert topic.topic_id == before.topic_id


def test_a_topic_created_again_never_mixes_with_the_one_before() -> None:
    tree = Tree(brokers=[1])
    tree.apply(creation(tree.image, NewTopic("t", 2, 1)))
    old_nodes = dict(tree.nodes)
    old = tree.image.topics["t"]
    tree.apply(deletion(tree.image, "t"))
    tree.apply(creation(tree.image, NewTopic("t", 2, 1)))
    new = tree.image.topics["t"]
    assert new.topic_id != old.topic_id
    for first in (paths.topic("t"), paths.topic_state("t", 0)):
        builder = ImageBuilder()
        builder.apply(old_nodes.items())
        seen = [builder.apply([(first, tree.nodes[first])]), builder.apply(tree.nodes.items())]
        assert seen[0].topics.get("t") in (None, old)
        assert seen[1].topics["t"] == new


def test_an_update_shares_all_that_it_does_not_change() -> None:
    tree = Tree(brokers=[1])
    tree.apply(creation(tree.image, NewTopic("big", 1000, 1), NewTopic("other", 1, 1)))
    old = tree.image
    topic = old.topics["big"]
    state = registry.decode_state(tree.nodes[paths.topic_state("big", 3)])
    partitions = list(topic.partitions[300:400])
    partitions[50] = replace(partitions[50], leader_epoch=1, partition_epoch=1)
    assert len(state.partitions) == 100
    new = tree.put(paths.topic_state("big", 3), registry.encode_state(topic.topic_id, 1, partitions))
    assert new.topics["other"] is old.topics["other"]
    assert new.brokers is old.brokers
    differing = [
        before.index
        for before, after in zip(topic.partitions, new.topics["big"].partitions, strict=True)
        if before is not after
    ]
    assert differing == [350]
    assert list(changed_topics(old, new)) == [(topic, new.topics["big"])]
    assert new.topics["big"].state_versions[3] == 1


def test_reading_the_same_again_gives_the_same_image() -> None:
    tree = Tree(brokers=[1, 2])
    tree.apply(creation(tree.image, NewTopic("t", 120, 2, configs={"a": "b"})))
    image = tree.image
    assert tree.builder.apply(tree.nodes.items()) is image
    rewritten = [(path, found._replace(modified_id=found.modified_id + 100)) for path, found in tree.nodes.items()]
    assert tree.builder.apply(rewritten) is image
    assert tree.builder.apply([("/unknown", None), ("/producer_ids", node(Create("/producer_ids", b"?")))]) is image


def test_changed_topics_tells_new_gone_and_created_again() -> None:
    tree = Tree(brokers=[1])
    tree.apply(creation(tree.image, NewTopic("gone", 1, 1), NewTopic("again", 1, 1), NewTopic("same", 1, 1)))
    old = tree.image
    tree.apply(deletion(tree.image, "gone"))
    tree.apply(deletion(tree.image, "again"))
    tree.apply(creation(tree.image, NewTopic("again", 1, 1), NewTopic("new", 1, 1)))
    new = tree.image

    def name(topic: TopicImage | None) -> str | None:
        return None if topic is None else topic.name

    found = {(name(before), name(after)) for before, after in changed_topics(old, new)}
    assert found == {("gone", None), ("again", None), (None, "again"), (None, "new")}
    assert list(changed_topics(new, new)) == []


def test_a_broker_is_fenced_until_its_very_registration_is_admitted() -> None:
    def offline_replicas() -> tuple[int, ...]:
        return tree.image.topics["t"].partitions[0].offline_replicas

    tree = Tree(brokers=[1, 2])
    tree.apply(creation(tree.image, NewTopic("t", 1, 2)))
    assert offline_replicas() == ()
    tree.deregister(2)
    assert offline_replicas() == (2,)
    returned = tree.register(2)
    assert returned.brokers[2].is_fenced
    assert not returned.brokers[2].is_active
    assert offline_replicas() == (2,)
    assert tree.admit().brokers[2].is_active
    assert offline_replicas() == ()


def test_broker_settings_fall_back_to_the_ones_for_all() -> None:
    tree = Tree(brokers=[1])
    tree.put(paths.broker_config(None), registry.encode_configs({"a": "all", "b": "all"}))
    tree.put(paths.broker_config(1), registry.encode_configs({"b": "one"}))
    assert tree.image.configs.of(1) == {"a": "all", "b": "one"}
    assert tree.image.configs.of(2) == {"a": "all", "b": "all"}
    tree.apply([Delete(paths.broker_config(None))])
    assert tree.image.configs.of(1) == {"b": "one"}
    assert tree.image.configs.versions == {1: 0}


@pytest.mark.parametrize(
    "path", ["/topics/t", "/topics/t/0", "/configs/topics/t", "/brokers/ids/1", "/controller_epoch"]
)
def test_a_corrupt_node_is_reported_and_what_was_known_stays(path: str) -> None:
    tree = Tree(brokers=[1])
    tree.put("/controller_epoch", registry.encode_counter("epoch", 4))
    tree.apply(creation(tree.image, NewTopic("t", 1, 1, configs={"a": "b"})))
    before = tree.image
    good = tree.nodes[path].data
    assert tree.put(path, b"garbage") is before
    assert list(tree.builder.problems) == [path]
    tree.put(path, good)
    assert tree.builder.problems == {}
    assert tree.image.topics["t"].partitions == before.topics["t"].partitions
