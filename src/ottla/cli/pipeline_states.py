"""How far each pipeline is: all of its queries as one, whatever number of them it has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.pipelines.frame.progress import Progress

WAITING: Final = "waiting"
# What is worst about a pipeline is said of it; all but these have ended.
_WORST_FIRST: Final = ("failed", "silent", "starting", "running")


@dataclass(frozen=True)
class State:
    """What is behind adds up, as do rows and what was left out; of ages and times the longest is said. Before a
    pipeline has a query it is `waiting`."""

    pipeline: str
    state: str
    rows_per_second: float
    lag: int | None
    behind_ms: int | None
    delay_ms: int | None
    batch_ms: int
    malformed: int
    late: int
    dropped: int


def states(names: Sequence[str], found: "Iterable[Progress]") -> list[State]:
    """In the order of the names."""
    by_name: dict[str, list[Progress]] = {name: [] for name in names}
    for one in found:
        by_name.setdefault(one.pipeline, []).append(one)
    return [_state(name, queries) for name, queries in by_name.items()]


def _state(name: str, queries: "list[Progress]") -> State:
    there = {one.state for one in queries}
    return State(
        name,
        next((state for state in _WORST_FIRST if state in there), "ended") if queries else WAITING,
        rows_per_second=sum(one.rows_per_second for one in queries),
        lag=sum(known) if (known := [one.lag for one in queries if one.lag is not None]) else None,
        behind_ms=max((one.behind_ms for one in queries if one.behind_ms is not None), default=None),
        delay_ms=max((one.delay_ms for one in queries if one.delay_ms is not None), default=None),
        batch_ms=max((one.batch_ms for one in queries), default=0),
        malformed=sum(one.dead_letters for one in queries),
        late=sum(one.late for one in queries),
        dropped=sum(one.dropped for one in queries),
    )
