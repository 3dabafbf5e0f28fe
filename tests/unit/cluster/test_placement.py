"""Where replicas go: the cases an operator would work out by hand."""

from collections import Counter

import pytest
from tests.unit.cluster.harness import SeededIds

from ottla.cluster.placement import PlaceableBroker, place_replicas
from ottla.protocol.errors import ErrorCode, KafkaError


def brokers(count: int, racks: int = 0) -> list[PlaceableBroker]:
    return [PlaceableBroker(node_id, f"rack{node_id % racks}" if racks else None) for node_id in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_six_brokers_ten_partitions_three_replicas_make_five_on_each(seed: int) -> None:
    placed = place_replicas(brokers(6), 10, 3, SeededIds(seed))
    assert Counter(node_id for replicas in placed for node_id in replicas) == dict.fromkeys(range(6), 5)
    leaders = Counter(replicas[0] for replicas in placed)
    assert sorted(leaders.values()) == [1, 1, 2, 2, 2, 2]


def test_replicas_of_a_partition_are_on_different_racks() -> None:
    placed = place_replicas(brokers(6, racks=3), 12, 3, SeededIds(1))
    assert all({node_id % 3 for node_id in replicas} == {0, 1, 2} for replicas in placed)
    assert Counter(node_id for replicas in placed for node_id in replicas) == dict.fromkeys(range(6), 6)


def test_a_lone_broker_on_its_rack_is_in_every_partition_that_needs_two_racks() -> None:
    lopsided = [PlaceableBroker(0, "a"), *(PlaceableBroker(node_id, "b") for node_id in range(1, 5))]
    placed = place_replicas(lopsided, 8, 2, SeededIds(1))
    assert all(0 in replicas for replicas in placed)
    assert Counter(replicas[0] for replicas in placed)[0] <= 2, "but it does not lead them all"


def test_single_partition_topics_start_anywhere() -> None:
    leaders = {place_replicas(brokers(6), 1, 1, SeededIds(seed))[0][0] for seed in range(60)}
    assert leaders == set(range(6))


def test_the_same_dice_place_the_same() -> None:
    assert place_replicas(brokers(7), 20, 3, SeededIds(4)) == place_replicas(brokers(7)[::-1], 20, 3, SeededIds(4))


def test_a_broker_shares_partitions_with_many_others() -> None:
    placed = place_replicas(brokers(12), 60, 3, SeededIds(2))
    for node_id in range(12):
        companions = {other for replicas in placed if node_id in replicas for other in replicas} - {node_id}
        assert len(companions) >= 9


@pytest.mark.parametrize(("count", "factor"), [(0, 1), (2, 3), (3, 0)])
def test_too_few_brokers_or_no_replicas_are_refused(count: int, factor: int) -> None:
    with pytest.raises(KafkaError) as refused:
        place_replicas(brokers(count), 1, factor, SeededIds())
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
