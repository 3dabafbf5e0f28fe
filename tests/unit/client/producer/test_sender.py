"""When batches go, in which requests, and how often they are tried."""

from collections.abc import Iterable
from typing import cast

import pytest
from tests.property.client.producer_world import TOPIC, Dice, HandClock, World

from ottla.client.cluster import NO_LEADER
from ottla.client.config import ProducerConfig, resolve
from ottla.client.network import Network
from ottla.client.producer.idle_topics import IdleTopics
from ottla.client.producer.partitions import PartitionQueue, StickyChoice, TopicQueues
from ottla.protocol.errors import ErrorCode


def requests_of(world: World, node: int = 1) -> list[list[int]]:
    """The partitions in each request that a broker has not answered."""
    return [[batch.queue.number for batch in shipment.batches] for shipment in world.waiting[node]]


def acquainted(world: World) -> World:
    """The brokers know the producer: each partition has a batch of it."""
    for partition in range(len(world.logs)):
        world.send(partition)
    world.settle()
    return world


def test_the_second_batch_of_a_partition_waits_for_the_first() -> None:
    world = World(1, linger_ms=0, batch_size=80)
    for _ in range(40):
        world.send(0)
    world.turn()
    assert requests_of(world) == [[0]]
    world.process(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.answer(1)
    world.settle()
    world.check(all_arrive=True)


def test_an_open_batch_lingers_and_a_full_one_goes_at_once() -> None:
    world = acquainted(World(1, batch_size=200, linger_ms=5))
    world.send(0)
    world.turn()
    assert requests_of(world) == []
    world.clock.now += 0.006
    world.turn()
    assert requests_of(world) == [[0]]
    for _ in range(12):
        world.send(0)
    world.turn()
    assert len(requests_of(world)) == 2


def test_partitions_of_one_broker_share_a_request() -> None:
    world = World(4, linger_ms=5)
    for partition in range(4):
        world.send(partition)
    world.clock.now += 0.006
    world.turn()
    assert [sorted(request) for request in requests_of(world, 1)] == [[0, 2]]
    assert [sorted(request) for request in requests_of(world, 2)] == [[1, 3]]


def test_a_request_is_never_larger_than_allowed_unless_one_batch_is() -> None:
    world = World(6, linger_ms=0, batch_size=100, max_request_size=250)
    world.leaders = [1] * 6
    world.learn()
    for partition in range(6):
        world.send(partition)
    world.turn()
    assert [len(request) for request in requests_of(world)] == [3, 3]
    assert sorted(number for request in requests_of(world) for number in request) == list(range(6))


def test_no_more_requests_in_flight_than_allowed() -> None:
    world = acquainted(World(1, linger_ms=0, batch_size=80, max_in_flight=3))
    for _ in range(40):
        world.send(0)
    world.turn()
    assert len(requests_of(world)) == 3
    world.process(1)
    world.answer(1)
    world.turn()
    assert len(requests_of(world)) == 3


@pytest.mark.parametrize(("records", "is_calm"), [(1, True), (3, True), (4, False)])
def test_it_is_calm_while_at_most_one_request_of_a_few_records_is_on_its_way(records: int, is_calm: bool) -> None:
    world = acquainted(World(2, linger_ms=0))
    seen = [world.sender.is_calm]
    for _ in range(records):
        world.send(0)
    world.turn()
    assert [request for node in world.waiting for request in requests_of(world, node)] == [[0]]
    seen.append(world.sender.is_calm)
    world.send(1)
    world.turn()
    seen.append(world.sender.is_calm)
    world.settle()
    seen.append(world.sender.is_calm)
    assert seen == [True, is_calm, False, True]


def test_a_full_batch_for_an_idle_broker_wakes_the_loop_although_another_is_busy() -> None:
    world = World(2, linger_ms=1000, batch_size=80, max_in_flight=1)
    for _ in range(20):
        world.send(0)
    world.turn()
    wakes = []
    world.appender.is_waking = False
    world.appender.wake = lambda: wakes.append(True)
    world.appender.is_timer_set = True
    for _ in range(20):
        world.send(1)
    assert wakes


def test_a_retry_waits_for_its_backoff_unless_the_leader_is_new() -> None:
    world = World(1, linger_ms=0, retry_backoff_ms=1000)
    world.send(0)
    world.turn()
    world.process(1, ErrorCode.NOT_ENOUGH_REPLICAS)
    world.answer(1)
    world.turn()
    assert requests_of(world) == []
    world.clock.now += 1.3
    world.turn()
    assert requests_of(world) == [[0]]
    world.process(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.move_leader(0, is_known=True)
    world.answer(1)
    world.turn()
    assert requests_of(world, 2) == [[0]]


def test_the_epoch_rises_when_a_batch_leaves_a_gap() -> None:
    world = World(1, linger_ms=0, batch_size=80)
    for _ in range(4):
        world.send(0)
    world.turn()
    world.process(1, ErrorCode.INVALID_RECORD)
    world.settle()
    assert world.sequences.identity == (42, 1)
    errors = [delivery.exception() for _, _, delivery in world.sent]
    assert errors[0] is not None
    assert errors[-1] is None
    assert world.logs[0].values == [value for (_, value, _), error in zip(world.sent, errors, strict=True) if not error]


def _topic(lengths: list[int]) -> TopicQueues:
    topic = TopicQueues(TOPIC, bytes(16))
    for number, length in enumerate(lengths):
        queue = PartitionQueue(TOPIC, number)
        queue.leader = 1
        queue.closed.extend([None] * length)  # type: ignore[list-item]  # only their number is looked at
        topic.partitions.append(queue)
    return topic


def _choice(clock: HandClock | None = None, **settings: object) -> StickyChoice:
    return StickyChoice(Dice(), resolve(ProducerConfig, "localhost:9092", None, settings), clock or HandClock())


def test_without_keys_longer_queues_get_less() -> None:
    choice = _choice()
    topic = _topic([0, 3, 9])
    picked = [choice.pick(topic) for _ in range(6000)]
    # Kafka's weights: by how much the longest queue is longer, and one more.
    for number, weight in enumerate([10, 7, 1]):
        assert abs(picked.count(number) / 6000 - weight / 18) < 0.03
    even = _choice(partitioner_adaptive_partitioning_enable=False)
    picked = [even.pick(topic) for _ in range(6000)]
    assert all(0.3 < picked.count(number) / 6000 < 0.37 for number in range(3))


def test_partitions_without_a_leader_are_passed_over_while_others_have_one() -> None:
    choice = _choice()
    topic = _topic([0, 0, 0])
    topic.partitions[1].leader = NO_LEADER
    assert {choice.pick(topic) for _ in range(100)} == {0, 2}
    for queue in topic.partitions:
        queue.leader = NO_LEADER
    assert {choice.pick(topic) for _ in range(100)} == {0, 1, 2}


def test_a_broker_that_takes_nothing_gets_nothing_without_a_key() -> None:
    world = World(2, linger_ms=0, batch_size=80, max_in_flight=1)
    for partition in (0, 1):
        world.send(partition)
    world.turn()
    for _ in range(8):
        world.send(0)
    topic = world.appender.topics[TOPIC]
    choice = _choice(world.clock, linger_ms=0, partitioner_availability_timeout_ms=100)
    assert {choice.pick(topic) for _ in range(200)} == {0, 1}
    world.clock.now += 0.2
    assert {choice.pick(topic) for _ in range(200)} == {1}
    patient = _choice(world.clock, linger_ms=0)
    assert {patient.pick(topic) for _ in range(200)} == {0, 1}


class _Watching:
    """Whose topics are kept up to date, of a network."""

    def __init__(self) -> None:
        self.topics: set[str] = set()

    def watch_topics(self, names: Iterable[str]) -> None:
        self.topics.update(names)

    def unwatch_topics(self, names: Iterable[str]) -> None:
        self.topics.difference_update(names)


def test_a_topic_without_records_is_not_asked_about_until_it_has_some() -> None:
    network = _Watching()
    idle = IdleTopics(cast(Network, network), 300.0)
    idle.used("orders", 0.0)
    idle.used("bills", 0.0)
    idle.look(10.0)
    idle.used("bills", 200.0)
    idle.look(301.0)
    assert network.topics == {"bills"}
    idle.used("orders", 400.0)
    assert network.topics == {"bills", "orders"}
    idle.look(600.0)
    assert network.topics == {"orders"}
