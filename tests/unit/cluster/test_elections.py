"""Who leads after brokers came and went."""

from dataclasses import replace

import pytest
from tests.unit.cluster.harness import SeededIds, Tree, registration_of

from ottla.cluster import paths, registry
from ottla.cluster.elections import (
    Standing,
    admitted_after,
    allows_unclean_election,
    elect,
    elect_all,
    elect_preferred,
    standing_of,
)
from ottla.cluster.image import NO_LEADER, PartitionImage
from ottla.cluster.requests import ControllerSettings, NewTopic
from ottla.cluster.topics import TopicDecisions

SETTINGS = ControllerSettings()


def partition(leader: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3)) -> PartitionImage:
    return PartitionImage(0, leader, 5, replicas, isr, 9)


def standing(stayed: str = "", returned: str = "", leaving: str = "") -> Standing:
    return Standing(*(frozenset(map(int, text)) for text in (stayed, returned, leaving)))


@pytest.mark.parametrize(
    ("before", "brokers", "leader", "isr", "is_new_epoch"),
    [
        # The leader is gone: the first of the others in sync leads, in the order of preference.
        (partition(1, (1, 2, 3)), standing(stayed="23"), 2, (2, 3), True),
        (partition(1, (3, 1)), standing(stayed="23"), 3, (3,), True),
        # A follower is gone: the ISR shrinks and the leader goes on under its epoch.
        (partition(1, (1, 2, 3)), standing(stayed="13"), 1, (1, 3), False),
        # One outside the ISR is gone: nothing to do.
        (partition(1, (1, 2)), standing(stayed="12"), 1, (1, 2), False),
        # The last one in sync is gone: no leader, and it keeps its place, whoever else is alive.
        (partition(1, (1,)), standing(stayed="23"), NO_LEADER, (1,), True),
        (partition(NO_LEADER, (1,)), standing(stayed="23"), NO_LEADER, (1,), False),
        # It returns and leads again.
        (partition(NO_LEADER, (1,)), standing(stayed="23", returned="1"), 1, (1,), True),
        # Leader and only member of the ISR restarted: a new epoch, since its log may have lost its end.
        (partition(1, (1,), (1,)), standing(returned="1"), 1, (1,), True),
        # A leader that restarted is out of sync where another stayed.
        (partition(1, (1, 2)), standing(stayed="2", returned="1"), 2, (2,), True),
        # A follower that restarted leaves the ISR until it has caught up.
        (partition(1, (1, 2)), standing(stayed="1", returned="2"), 1, (1,), False),
        # All restarted: those in sync that are back already lead and follow.
        (partition(2, (2, 3)), standing(returned="123"), 2, (2, 3), True),
        (partition(2, (2, 3)), standing(returned="13"), 3, (3,), True),
        # A leader that shuts down hands over, or leads on when there is no one.
        (partition(1, (1, 2)), standing(stayed="2", leaving="1"), 2, (2,), True),
        (partition(1, (1,)), standing(stayed="2", leaving="1"), 1, (1,), False),
        (partition(1, (1, 3)), standing(leaving="1"), 1, (1,), False),
        # One that shuts down is not elected.
        (partition(1, (1, 2)), standing(stayed="3", leaving="2"), NO_LEADER, (1, 2), True),
    ],
)
def test_clean_elections(
    before: PartitionImage, brokers: Standing, leader: int, isr: tuple[int, ...], is_new_epoch: bool
) -> None:
    after = elect(before, brokers, is_unclean_allowed=False)
    assert (after.leader, after.isr, after.leader_epoch) == (leader, isr, 5 + is_new_epoch)
    if (leader, isr) == (before.leader, before.isr) and not is_new_epoch:
        assert after is before
    else:
        assert after.partition_epoch == 10
    assert (after.index, after.replicas) == (before.index, before.replicas)


@pytest.mark.parametrize(
    ("before", "brokers", "leader", "isr"),
    [
        (partition(1, (1,)), standing(stayed="23"), 2, (2,)),
        (partition(1, (1,)), standing(stayed="3", returned="2"), 2, (2,)),
        (partition(NO_LEADER, (1,)), standing(stayed="3"), 3, (3,)),
        # As long as one in sync is alive, it is preferred.
        (partition(1, (1, 3)), standing(stayed="23"), 3, (3,)),
        # No one at all is alive.
        (partition(1, (1,)), standing(), NO_LEADER, (1,)),
    ],
)
def test_unclean_elections_only_where_there_is_no_clean_one(
    before: PartitionImage, brokers: Standing, leader: int, isr: tuple[int, ...]
) -> None:
    after = elect(before, brokers, is_unclean_allowed=True)
    assert (after.leader, after.isr, after.leader_epoch) == (leader, isr, 6)


def test_an_election_that_was_made_is_not_made_again() -> None:
    for before in (partition(1, (1, 2, 3)), partition(1, (1,)), partition(NO_LEADER, (2,))):
        for brokers in (standing(stayed="23"), standing(stayed="1"), standing(stayed="123")):
            after = elect(before, brokers, is_unclean_allowed=False)
            assert elect(after, brokers, is_unclean_allowed=False) is after


def tree_with_topics(brokers: list[int], *requests: NewTopic) -> Tree:
    tree = Tree(brokers=brokers)
    decisions = TopicDecisions(SETTINGS, lambda configs: None, SeededIds(1), controller_epoch=1)
    for decision in decisions.create_topics(tree.image, requests, {}):
        tree.apply(decision.operations)
    return tree


def test_brokers_stand_by_the_epoch_that_was_admitted() -> None:
    tree = Tree(brokers=[1, 2, 3, 4])
    tree.deregister(2)
    tree.deregister(3)
    tree.register(3)
    tree.register(5)
    tree.put(paths.broker(4), registry.encode_broker(registration_of(4, is_shutting_down=True)))
    found = standing_of(tree.image)
    assert (found.stayed, found.returned, found.leaving) == ({1}, {3, 5}, {4})
    assert set(admitted_after(tree.image)) == {1, 3, 4, 5}
    tree.put(paths.broker(5), registry.encode_broker(registration_of(5, is_shutting_down=True)))
    found = standing_of(tree.image)
    assert (found.stayed, found.returned, found.leaving) == ({1}, {3}, {4}), "it leaves before it was admitted"


def test_only_chunks_with_a_change_are_written() -> None:
    assignments = tuple((index, (1, 2) if index == 150 else (2, 3)) for index in range(300))
    tree = tree_with_topics([1, 2, 3], NewTopic("t", assignments=assignments))
    tree.deregister(1)
    writes = list(elect_all(tree.image, SETTINGS, controller_epoch=7))
    assert [write.path for write in writes] == [paths.topic_state("t", 1)]
    tree.apply(writes)
    around = tree.image.topics["t"].partitions[149:152]
    assert [(found.leader, found.isr, found.leader_epoch) for found in around] == [
        (2, (2, 3), 0),
        (2, (2,), 1),
        (2, (2, 3), 0),
    ]
    tree.admit()
    assert list(elect_all(tree.image, SETTINGS, controller_epoch=7)) == []
    assert b'"controller_epoch":7' in tree.nodes[paths.topic_state("t", 1)].data


def test_a_restart_gives_all_that_a_single_broker_leads_a_new_leader_epoch() -> None:
    tree = tree_with_topics([0], NewTopic("a", 2, 1), NewTopic("b", 1, 1))
    for restart in (1, 2):
        tree.deregister(0)
        tree.register(0)
        tree.apply(elect_all(tree.image, SETTINGS, controller_epoch=restart))
        tree.admit()
        for topic in tree.image.topics.values():
            assert {(partition.leader, partition.leader_epoch) for partition in topic.partitions} == {(0, restart)}


def test_unclean_election_is_allowed_by_topic_then_all_brokers_then_the_settings() -> None:
    allowed = ControllerSettings(unclean_leader_election_enable=True)
    tree = tree_with_topics(
        [1],
        NewTopic("yes", 1, 1, configs={"unclean.leader.election.enable": "true"}),
        NewTopic("no", 1, 1, configs={"unclean.leader.election.enable": "false"}),
        NewTopic("unset", 1, 1),
    )

    def answers(settings: ControllerSettings) -> list[bool]:
        topics = tree.image.topics
        return [allows_unclean_election(topics[name], tree.image, settings) for name in ("yes", "no", "unset")]

    assert answers(SETTINGS) == [True, False, False]
    assert answers(allowed) == [True, False, True]
    tree.put(paths.broker_config(None), registry.encode_configs({"unclean.leader.election.enable": "false"}))
    assert answers(allowed) == [True, False, False]


def lose(tree: Tree, node_id: int, *indexes: int) -> None:
    """Let a broker report replicas of topic t as offline."""
    offline = {tree.image.topics["t"].topic_id: indexes} if indexes else {}
    registration = replace(registration_of(node_id), offline_partitions=offline)
    tree.put(paths.broker(node_id), registry.encode_broker(registration))
    tree.apply(elect_all(tree.image, SETTINGS, controller_epoch=1))
    assert list(elect_all(tree.image, SETTINGS, controller_epoch=1)) == [], "all is dealt with"


def test_a_replica_that_is_offline_leads_nothing() -> None:
    """Another in sync leads; without one there is no leader until the replica is back, and its place is kept."""
    tree = tree_with_topics([1, 2], NewTopic("t", assignments=((0, (1, 2)), (1, (1, 2)), (2, (1, 2)))))

    def states() -> list[tuple[int, tuple[int, ...], int, tuple[int, ...]]]:
        return [
            (each.leader, each.isr, each.leader_epoch, each.offline_replicas)
            for each in tree.image.topics["t"].partitions
        ]

    untouched = (1, (1, 2), 0, ())
    assert states() == [untouched] * 3
    lose(tree, 1, 0, 1)
    assert states() == [(2, (2,), 1, (1,)), (2, (2,), 1, (1,)), untouched]
    lose(tree, 2, 1)
    assert states() == [(2, (2,), 1, (1,)), (NO_LEADER, (2,), 2, (1, 2)), untouched]
    lose(tree, 1)
    assert states() == [(2, (2,), 1, ()), (NO_LEADER, (2,), 2, (2,)), untouched]
    lose(tree, 2)
    assert states() == [(2, (2,), 1, ()), (2, (2,), 3, ()), untouched]


def test_a_preferred_leader_that_is_offline_stays_away() -> None:
    tree = tree_with_topics([1, 2], NewTopic("t", assignments=((0, (1, 2)),)))
    lose(tree, 1, 0)
    topic = tree.image.topics["t"]
    in_sync = [PartitionImage(0, 2, 1, (1, 2), (2, 1), 2)]
    tree.put(paths.topic_state("t", 0), registry.encode_state(topic.topic_id, 1, in_sync))
    assert elect_preferred(tree.image, tree.image.topics["t"], 0) is None


def test_the_preferred_leader_takes_over_only_when_it_can() -> None:
    tree = tree_with_topics([1, 2], NewTopic("t", assignments=((0, (1, 2)),)))
    assert elect_preferred(tree.image, tree.image.topics["t"], 0) is None
    tree.deregister(1)
    tree.apply(elect_all(tree.image, SETTINGS, controller_epoch=1))
    tree.admit()
    tree.register(1)
    tree.admit()
    assert tree.image.topics["t"].partitions[0].leader == 2
    assert elect_preferred(tree.image, tree.image.topics["t"], 0) is None, "it is not in sync yet"
    topic = tree.image.topics["t"]
    caught_up = [PartitionImage(0, 2, 1, (1, 2), (2, 1), 2)]
    tree.put(paths.topic_state("t", 0), registry.encode_state(topic.topic_id, 1, caught_up))
    elected = elect_preferred(tree.image, tree.image.topics["t"], 0)
    assert elected is not None
    assert (elected.leader, elected.leader_epoch, elected.partition_epoch, elected.isr) == (1, 2, 3, (2, 1))
