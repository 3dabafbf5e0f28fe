"""Elections that are asked for, on clusters of several brokers."""

from dataclasses import replace

from tests.unit.cluster.harness import SeededIds, Tree, registration_of

from ottla.cluster import paths, registry
from ottla.cluster.elections import elect_all
from ottla.cluster.image import NO_LEADER, PartitionImage
from ottla.cluster.leader_requests import ElectionType, Planned, elect_leaders
from ottla.cluster.requests import ControllerSettings, NewTopic
from ottla.cluster.topics import TopicDecisions
from ottla.protocol.errors import ErrorCode

SETTINGS = ControllerSettings()
EPOCH = 4
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
Asked = dict[str, list[int]] | None


def cluster() -> Tree:
    """Three brokers; partition 0 prefers broker 1, partition 1 broker 2."""
    tree = Tree(brokers=(1, 2, 3))
    topics = TopicDecisions(SETTINGS, lambda configs: None, SeededIds(), EPOCH)
    wanted = NewTopic("t", assignments=((0, (1, 2)), (1, (2, 1))))
    (decision,) = topics.create_topics(tree.image, [wanted], {})
    tree.apply(decision.operations)
    return tree


def settle(tree: Tree) -> None:
    tree.apply(elect_all(tree.image, SETTINGS, EPOCH))
    tree.admit()


def ask(
    tree: Tree, election: ElectionType, asked: Asked, planned: Planned | None = None
) -> dict[str, dict[int, ErrorCode]]:
    decisions = elect_leaders(tree.image, election, asked, {} if planned is None else planned, EPOCH)
    for decision in decisions:
        if decision.operations:
            tree.apply(decision.operations)
    return {
        decision.result.topic: {
            index: ErrorCode.NONE if error is None else error.code
            for index, error in decision.result.partitions.items()
        }
        for decision in decisions
    }


def partition(tree: Tree, index: int = 0) -> PartitionImage:
    found = tree.image.partition("t", index)
    assert found is not None
    return found


def led_by_the_second() -> Tree:
    """Broker 1 was away and is in sync again, but does not lead."""
    tree = cluster()
    tree.deregister(1)
    settle(tree)
    tree.register(1)
    settle(tree)
    topic = tree.image.topics["t"]
    states = [replace(each, isr=(2, 1)) for each in topic.partitions]
    tree.put(paths.topic_state("t", 0), registry.encode_state(topic.topic_id, EPOCH, states))
    assert partition(tree).leader == 2
    return tree


def test_the_preferred_replica_leads_again() -> None:
    tree = led_by_the_second()
    before = partition(tree)
    found = ask(tree, PREFERRED, {"t": [1, 0]})
    assert found == {"t": {1: ErrorCode.ELECTION_NOT_NEEDED, 0: ErrorCode.NONE}}
    after = partition(tree)
    assert (after.leader, after.leader_epoch, after.isr) == (1, before.leader_epoch + 1, before.isr)
    assert ask(tree, PREFERRED, {"t": [0]}) == {"t": {0: ErrorCode.ELECTION_NOT_NEEDED}}


def test_all_partitions() -> None:
    tree = led_by_the_second()
    assert ask(tree, PREFERRED, None) == {"t": {0: ErrorCode.NONE, 1: ErrorCode.ELECTION_NOT_NEEDED}}
    assert [partition(tree, index).leader for index in range(2)] == [1, 2]


def test_a_success_that_nobody_heard_of_is_a_success() -> None:
    tree = led_by_the_second()
    planned: Planned = {}
    ask(tree, PREFERRED, {"t": [0]}, planned)
    epoch = partition(tree).leader_epoch
    assert ask(tree, PREFERRED, {"t": [0]}, planned) == {"t": {0: ErrorCode.NONE}}
    assert partition(tree).leader_epoch == epoch


def test_one_that_is_not_in_sync_is_not_elected_as_preferred() -> None:
    tree = cluster()
    tree.deregister(1)
    settle(tree)
    assert ask(tree, PREFERRED, {"t": [0]}) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    tree.register(1)
    settle(tree)
    assert ask(tree, PREFERRED, {"t": [0]}) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    assert partition(tree).leader == 2


def test_an_unclean_election_takes_whoever_is_alive_where_there_is_no_leader() -> None:
    tree = cluster()
    tree.deregister(1)
    settle(tree)
    assert ask(tree, UNCLEAN, {"t": [0]}) == {"t": {0: ErrorCode.ELECTION_NOT_NEEDED}}
    tree.deregister(2)
    settle(tree)
    assert partition(tree).leader == NO_LEADER
    assert ask(tree, UNCLEAN, {"t": [0]}) == {"t": {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}}
    tree.register(1)
    settle(tree)
    before = partition(tree)
    assert before.leader == NO_LEADER
    assert ask(tree, UNCLEAN, {"t": [0]}) == {"t": {0: ErrorCode.NONE}}
    after = partition(tree)
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), before.leader_epoch + 1)


def test_a_replica_that_is_offline_is_not_elected() -> None:
    tree = cluster()
    tree.deregister(2)
    settle(tree)
    lost = replace(registration_of(1), offline_partitions={tree.image.topics["t"].topic_id: (0,)})
    tree.put(paths.broker(1), registry.encode_broker(lost))
    settle(tree)
    assert partition(tree).leader == NO_LEADER
    assert ask(tree, PREFERRED, {"t": [0]}) == {"t": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    assert ask(tree, UNCLEAN, {"t": [0]}) == {"t": {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}}


def test_what_does_not_exist() -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(cluster(), UNCLEAN, {"nope": [0], "t": [2, -1], "empty": []}) == {
        "nope": {0: unknown},
        "t": {2: unknown, -1: unknown},
        "empty": {},
    }
