"""Placement, for any cluster."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.harness import SeededIds

from ottla.cluster.placement import PlaceableBroker, place_replicas


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PlaceableBroker], int, int]:
    racks = draw(st.lists(st.sampled_from([None, "a", "b", "c", "d"]), min_size=1, max_size=12))
    brokers = [PlaceableBroker(node_id * 3, rack) for node_id, rack in enumerate(racks)]
    return brokers, draw(st.integers(1, 40)), draw(st.integers(1, len(brokers)))


@given(clusters(), st.integers(0, 1000))
def test_replicas_are_distinct_and_on_as_many_racks_as_there_are(
    cluster: tuple[list[PlaceableBroker], int, int], seed: int
) -> None:
    brokers, partition_count, factor = cluster
    rack_of = {broker.node_id: broker.rack for broker in brokers}
    placed = place_replicas(brokers, partition_count, factor, SeededIds(seed))
    assert len(placed) == partition_count
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(rack_of)
        racks = Counter(rack_of[node_id] for node_id in replicas)
        assert len(racks) == min(factor, len(set(rack_of.values())))


@given(st.integers(1, 12), st.integers(0, 5), st.integers(1, 60), st.data())
def test_replicas_and_leaders_are_even_without_racks_and_with_equal_ones(
    per_rack: int, rack_count: int, partition_count: int, data: st.DataObject
) -> None:
    brokers = [
        PlaceableBroker(node_id, f"rack{node_id // per_rack}" if rack_count else None)
        for node_id in range(per_rack * max(1, rack_count))
    ]
    factor = data.draw(st.integers(1, min(5, len(brokers))))
    placed = place_replicas(brokers, partition_count, factor, SeededIds(data.draw(st.integers(0, 1000))))
    for counted in (Counter(node for replicas in placed for node in replicas), Counter(row[0] for row in placed)):
        counts = [counted[broker.node_id] for broker in brokers]
        assert max(counts) - min(counts) <= 1
