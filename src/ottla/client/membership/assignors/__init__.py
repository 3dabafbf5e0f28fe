"""Who reads what in a classic group: Kafka's assignors with Kafka's answers, and room for others.

| name                 | gives                                                                          | rebalance   |
|----------------------|--------------------------------------------------------------------------------|-------------|
| `range`              | neighbouring partitions of each topic, alike for all topics                     | eager       |
| `roundrobin`         | all partitions of all topics in turn                                            | eager       |
| `sticky`             | even shares, keeping what members had                                           | eager       |
| `cooperative-sticky` | the same, and what members keep is read without a break                         | cooperative |

An assignor may hold state between rebalances, so every consumer has its own.
"""

from collections.abc import Sequence

from ottla.client.errors import ConfigError
from ottla.client.membership.assignors.model import (
    Assignor,
    GroupView,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
)
from ottla.client.membership.assignors.range import RangeAssignor
from ottla.client.membership.assignors.round_robin import RoundRobinAssignor
from ottla.client.membership.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "GroupView",
    "MemberAssignment",
    "MemberSubscription",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "assignors_of",
    "common_protocol",
]

_BUILT_IN: tuple[type[Assignor], ...] = (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
_BY_NAME = {kind.name: kind for kind in _BUILT_IN}
_BY_NAME |= {f"org.apache.kafka.clients.consumer.{kind.__name__}": kind for kind in _BUILT_IN}


def assignors_of(strategy: Sequence[str | Assignor | type[Assignor]]) -> tuple[Assignor, ...]:
    """The assignors of `partition.assignment.strategy`: names, Java's class names, assignors of one's own."""
    found = tuple(map(_assignor, strategy))
    names = [assignor.name for assignor in found]
    if not found:
        raise ConfigError("partition.assignment.strategy is empty: name at least one, such as range")
    if len(set(names)) < len(names):
        raise ConfigError(f"partition.assignment.strategy has an assignor twice: {', '.join(names)}")
    common_protocol(found)
    return found


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most advanced way to rebalance that all of them allow."""
    shared = frozenset.intersection(*(frozenset(assignor.protocols) for assignor in assignors))
    if not shared:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ConfigError(f"partition.assignment.strategy mixes assignors that rebalance in different ways: {names}")
    return max(shared)


def _assignor(wanted: str | Assignor | type[Assignor]) -> Assignor:
    if isinstance(wanted, str):
        kind = _BY_NAME.get(wanted)
        if kind is None:
            raise ConfigError(
                f"partition.assignment.strategy has no {wanted!r}: there are "
                f"{', '.join(known.name for known in _BUILT_IN)}; hand in an object for one of your own"
            )
        return kind()
    return wanted() if isinstance(wanted, type) else wanted
