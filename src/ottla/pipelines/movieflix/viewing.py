"""People who watch shows, by a seed: they go on, skip, stop, and begin something else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from ottla.pipelines.movieflix.catalogue import Show

STEP_MS = 10_000
"""How often a player reports where it is."""


class View(NamedTuple):
    """A player's report: so many seconds were watched since the last one, and this is where it is now."""

    event_time: int
    event_id: str
    user_id: str
    show_id: str
    position_s: int
    watched_s: int
    finished: bool


@dataclass
class _Viewer:
    user_id: str
    positions: dict[str, int] = field(default_factory=dict)
    show: Show | None = None


class Audience:
    """So many users in front of the same catalogue; about half of them watch at any time."""

    def __init__(self, seed: int, shows: list[Show], users: int = 20) -> None:
        self._random = random.Random(seed)
        self._shows = shows
        self._viewers = [_Viewer(f"user-{number:04}") for number in range(users)]

    def views(self, start_ms: int) -> Iterator[View]:
        """Without an end, in the order of event time."""
        for now in count(start_ms, STEP_MS):
            views = [self._watch(viewer, now) for viewer in self._viewers]
            yield from sorted(view for view in views if view is not None)

    def _watch(self, viewer: _Viewer, now: int) -> View | None:
        if viewer.show is None:
            viewer.show = self._chosen(now) if self._random.random() < 0.1 else None
            return None
        show = viewer.show
        length_s = show.minutes * 60
        position_s = viewer.positions.get(show.show_id, 0)
        if self._random.random() < 0.1:
            position_s = self._random.choice((self._random.randrange(length_s), length_s - 15))
        watched_s = min(STEP_MS // 1000, length_s - position_s)
        position_s += watched_s
        finished = position_s == length_s
        viewer.positions[show.show_id] = 0 if finished else position_s
        if finished or self._random.random() < 0.07:
            viewer.show = None
        event_time = now + 100 * self._random.randrange(STEP_MS // 100)
        event_id = f"{self._random.getrandbits(64):016x}"
        return View(event_time, event_id, viewer.user_id, show.show_id, position_s, watched_s, finished)

    def _chosen(self, now: int) -> Show:
        return self._random.choice([show for show in self._shows if show.available_from <= now])
