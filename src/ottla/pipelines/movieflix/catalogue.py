"""The shows that there are, for the generator: a few of each pair of genres."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

GENRES = ("comedy", "crime", "documentary", "drama", "family", "science fiction")
MINUTES = (22, 45, 58, 90, 118)


class Show(NamedTuple):
    """A show in the catalogue; of equally fitting ones, that with the lower rank is recommended."""

    show_id: str
    title: str
    genres: tuple[str, ...]
    minutes: int
    rank: int
    available_from: int


def shows(start_ms: int) -> list[Show]:
    """Shows of one genre and of two; each fifth of them has its premiere some minutes after the start."""
    kinds = [(genre,) for genre in GENRES] + list(combinations(GENRES, 2))
    found = []
    for number, genres in enumerate(kinds * 2):
        premiere = start_ms + 60_000 * number if number % 5 == 4 else 0
        title = f"{' and '.join(genres).capitalize()}, part {1 + number // len(kinds)}"
        rank = (number * 17) % (2 * len(kinds))
        found.append(Show(f"show-{number:02}", title, genres, MINUTES[number % len(MINUTES)], rank, premiere))
    return found
