"""Which brokers get the replicas of new partitions.

What holds, in this order of importance:

1. replicas of one partition are on different brokers, and on as many different racks as there are;
2. replicas are even: without racks, or with racks of equal size, any two brokers differ by at most one (6 brokers,
   10 partitions, 3 replicas: 5 replicas on each);
3. preferred leaders are even: any two brokers differ by at most one, where racks of unequal size allow it.

Each partition takes the least loaded brokers, one rack after the other. Equals take turns in an order that is drawn
anew each round, so that the partitions of one broker have their other replicas on many. The leader is the member
that leads least; at the end, leaderships are handed on along chains of partitions until they are even.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import IdSource


@dataclass(frozen=True, slots=True)
class PlaceableBroker:
    node_id: int
    rack: str | None = None


def place_replicas(
    brokers: Sequence[PlaceableBroker], partition_count: int, replication_factor: int, ids: IdSource
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first; INVALID_REPLICATION_FACTOR when brokers lack."""
    if replication_factor < 1:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        message = (
            f"Unable to replicate the partition {replication_factor} time(s): "
            f"only {len(brokers)} broker(s) are available."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    return _Placement(brokers, replication_factor, ids).place(partition_count)


class _Placement:
    """One run. Brokers are known by their position in the list."""

    def __init__(self, brokers: Sequence[PlaceableBroker], replication_factor: int, ids: IdSource) -> None:
        self._ids = ids
        self._replication_factor = replication_factor
        self._brokers = sorted(brokers, key=lambda broker: broker.node_id)
        racks = [broker.rack or "" for broker in self._brokers]
        numbers = {rack: number for number, rack in enumerate(dict.fromkeys(racks))}
        self._rack_of = [numbers[rack] for rack in racks]
        self._load = [0] * len(self._brokers)
        self._rack_load = [0] * len(numbers)
        self._turn = list(range(len(self._brokers)))

    def place(self, partition_count: int) -> list[tuple[int, ...]]:
        round_length = max(1, len(self._brokers) // self._replication_factor)
        groups = []
        for partition in range(partition_count):
            if partition % round_length == 0:
                self._shuffle_turns()
            groups.append(self._choose_group())
        leaders = _balanced_leaders(groups, len(self._brokers))
        return [
            tuple(
                self._brokers[position].node_id for position in (leader, *(other for other in group if other != leader))
            )
            for group, leader in zip(groups, leaders, strict=True)
        ]

    def _shuffle_turns(self) -> None:
        for index in range(len(self._turn) - 1, 0, -1):
            other = self._ids.below(index + 1)
            self._turn[index], self._turn[other] = self._turn[other], self._turn[index]

    def _choose_group(self) -> list[int]:
        load, rack_of, rack_load, turn = self._load, self._rack_of, self._rack_load, self._turn
        candidates = sorted(
            range(len(load)), key=lambda position: (load[position], rack_load[rack_of[position]], turn[position])
        )
        if len(rack_load) == 1:
            group = candidates[: self._replication_factor]
        else:
            group = []
            used = [0] * len(rack_load)
            while len(group) < self._replication_factor:
                best = min(candidates, key=lambda position: used[rack_of[position]])
                candidates.remove(best)
                used[rack_of[best]] += 1
                group.append(best)
        for position in group:
            load[position] += 1
            rack_load[rack_of[position]] += 1
        return group


def _balanced_leaders(groups: Sequence[Sequence[int]], broker_count: int) -> list[int]:
    """One member of each group, such that no broker could hand a leadership on and make the counts more even."""
    led = [0] * broker_count
    leaders = []
    for group in groups:
        leader = min(group, key=lambda position: led[position])
        led[leader] += 1
        leaders.append(leader)
    while (chain := _handing_on(groups, leaders, led)) is not None:
        for partition, leader in chain:
            led[leaders[partition]] -= 1
            led[leader] += 1
            leaders[partition] = leader
    return leaders


def _handing_on(
    groups: Sequence[Sequence[int]], leaders: Sequence[int], led: Sequence[int]
) -> list[tuple[int, int]] | None:
    """A chain (partition, its next leader) from a busiest broker to one that leads at least two less, if any."""
    if max(led) - min(led) < 2:
        return None
    led_by: dict[int, list[int]] = {}
    for partition, leader in enumerate(leaders):
        led_by.setdefault(leader, []).append(partition)
    for start in (position for position, count in enumerate(led) if count == max(led)):
        came_by: dict[int, tuple[int, int]] = {}
        waiting = [start]
        for position in waiting:
            if led[position] <= led[start] - 2:
                chain = []
                while position != start:
                    partition, previous = came_by[position]
                    chain.append((partition, position))
                    position = previous
                return chain
            for partition in led_by.get(position, ()):
                for other in groups[partition]:
                    if other != start and other not in came_by:
                        came_by[other] = (partition, position)
                        waiting.append(other)
    return None
