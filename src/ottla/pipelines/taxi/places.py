"""Where things are: H3 cells and distances on the ground.

Cells only make the search short: who is nearest is decided by distance, on either side of every cell's border.
"""

from __future__ import annotations

import h3

REACH_M = 2_000
"""No driver further from a user than this is matched."""

DRIVER_CELL = 8
"""H3's resolution of the cells that drivers are looked up in: about 900 m from one to the next."""

RINGS = 4
"""So many rings of cells around a user's own hold every point within REACH_M of the user."""

PRICE_CELL = 7
"""H3's resolution of the cells that have a surge price: a neighbourhood, about 2.4 km across."""


def driver_cell(latitude: float, longitude: float) -> str:
    return str(h3.latlng_to_cell(latitude, longitude, DRIVER_CELL))


def price_cell(latitude: float, longitude: float) -> str:
    return str(h3.latlng_to_cell(latitude, longitude, PRICE_CELL))


def cells_in_reach(cell: str) -> list[str]:
    return list(h3.grid_disk(cell, RINGS))


def metres_between(here: tuple[float, float], there: tuple[float, float]) -> float:
    """Along the great circle, as H3 has the Earth: a sphere with a radius of 6,371,007.18 m."""
    return float(h3.great_circle_distance(here, there, unit="m"))
