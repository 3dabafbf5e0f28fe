"""Uniform assignment where members subscribe to different topics, so that no share follows from counting.

1. Everybody keeps what it has of the topics it still subscribes to.
2. Partitions that nobody has go to the least loaded subscriber of their topic, one by one. Topics with the most
   partitions for each subscriber come first: they leave the least choice.
3. Partitions move from the most to the least loaded subscribers of a topic, topic after topic, until a whole round
   has changed nothing. Rounds are limited: balance is worth less than an end.
"""

from ottla.groups.consumer.assignors.balancer import Balancer
from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, topic_order

ROUNDS = 16
NOBODY = -1


class MixedBuilder:
    """Members are numbered in their order; `_owners` says who has each partition of each topic."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._loads = [0] * len(spec.members)
        self._subscribers: dict[bytes, list[int]] = {}
        for number, member in enumerate(spec.members):
            for topic_id in sorted(member.topic_ids, key=topic_order):
                self._subscribers.setdefault(topic_id, []).append(number)
        counts = spec.partition_counts
        self._owners = {topic_id: [NOBODY] * counts[topic_id] for topic_id in self._subscribers}
        self._topic_ids = sorted(self._subscribers, key=self._difficulty)

    def _difficulty(self, topic_id: bytes) -> tuple[float, int, tuple[int, ...]]:
        subscriber_count = len(self._subscribers[topic_id])
        return -self._spec.partition_counts[topic_id] / subscriber_count, subscriber_count, topic_order(topic_id)

    def build(self) -> dict[str, Assignment]:
        if not self._topic_ids:
            return {}
        self._keep()
        for topic_id in self._topic_ids:
            self._hand_out(topic_id)
        self._balance()
        return self._result()

    def _keep(self) -> None:
        for number, member in enumerate(self._spec.members):
            for topic_id, partitions in member.assigned.items():
                if topic_id in member.topic_ids:
                    self._loads[number] += len(partitions)
                    owners = self._owners[topic_id]
                    for index in partitions:
                        owners[index] = number

    def _hand_out(self, topic_id: bytes) -> None:
        owners = self._owners[topic_id]
        if NOBODY not in owners:
            return
        balancer = Balancer(self._loads, self._subscribers[topic_id])
        for index, owner in enumerate(owners):
            if owner == NOBODY:
                member = balancer.next_least_loaded()
                owners[index] = member
                self._loads[member] += 1

    def _balance(self) -> None:
        topic_ids = [topic_id for topic_id in self._topic_ids if len(self._subscribers[topic_id]) > 1]
        last_changed: int | None = None
        for _ in range(ROUNDS):
            for place, topic_id in enumerate(topic_ids):
                if place == last_changed:
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = place

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Whether partitions moved. A member gives its last partition of the topic first."""
        balancer = Balancer(self._loads, self._subscribers[topic_id])
        if balancer.imbalance <= 1:
            return False
        owners = self._owners[topic_id]
        to_give: dict[int, list[int]] = {}
        for index, owner in enumerate(owners):
            to_give.setdefault(owner, []).append(index)
        has_moved = False
        while not balancer.is_balanced():
            giver = balancer.next_most_loaded()
            while giver is not None and not to_give.get(giver):
                balancer.exclude_last_most_loaded()
                giver = balancer.next_most_loaded()
            if giver is None:
                break
            index = to_give[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced():
                break
            owners[index] = taker
            self._loads[giver] -= 1
            self._loads[taker] += 1
            has_moved = True
        return has_moved

    def _result(self) -> dict[str, Assignment]:
        found: list[dict[bytes, set[int]]] = [{} for _ in self._spec.members]
        for topic_id in sorted(self._owners, key=topic_order):
            for index, owner in enumerate(self._owners[topic_id]):
                found[owner].setdefault(topic_id, set()).add(index)
        return {
            member.member_id: {topic_id: frozenset(partitions) for topic_id, partitions in found[number].items()}
            for number, member in enumerate(self._spec.members)
        }
