"""The steps of a run, and what they share.

What must stay true: steps run one after the other, and a step that fails spoils its own row only. The rest of that
row on that side is left out and the failure is reported; the other rows go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.peers import Peers
from bench.results import Results
from bench.settings import Settings


@dataclass(slots=True)
class Bench:
    """What a section is handed: how much to do, with which brokers, and where results go."""

    settings: Settings
    peers: Peers
    results: Results

    def rounds(self, counted: int | None = None) -> Iterator[tuple[int, bool]]:
        """Number of the round and whether it counts; the warm ones come first and do not."""
        for number in range(-self.settings.warm_rounds, self.settings.rounds if counted is None else counted):
            yield number, number >= 0


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. Steps of one `group` depend on each other: after a failure the rest of them are skipped.

    Except the one that `cleans_up`: a broker that goes on running would disturb what is measured next.
    """

    title: str
    group: str
    work: Callable[[], None]
    cleans_up: bool = False


def round_text(number: int, counted: bool, rounds: int) -> str:
    return f"run {number + 1} of {rounds}" if counted else "warm-up"
