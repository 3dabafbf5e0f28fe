"""The surge price of each neighbourhood, from who asked for a ride and who was free in the last whole minute.

Prices are percent of the normal fare, as whole numbers, so that every computation of them agrees to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

WINDOW_MS = 60_000
NORMAL_PERCENT = 100
HIGHEST_PERCENT = 300


def surge_percent(demand: int, supply: int) -> int:
    """As many rides asked for as drivers free is the normal price; three times as many is the most that is charged."""
    return min(HIGHEST_PERCENT, max(NORMAL_PERCENT, 100 * demand // max(supply, 1)))


class Price(NamedTuple):
    """The price of a cell from `valid_from` on, until there is another one."""

    cell: str
    valid_from: int
    demand: int
    supply: int
    percent: int


@dataclass
class Surge:
    """Counts of the window that is open, and the prices that the one before it made."""

    window: int = 0
    requests: dict[str, set[str]] = field(default_factory=dict)
    free_drivers: dict[str, set[str]] = field(default_factory=dict)
    raised: dict[str, int] = field(default_factory=dict)

    def window_end(self) -> int | None:
        """When the open window changes a price; None if nothing would."""
        if self.requests or self.free_drivers or self.raised:
            return (self.window + 1) * WINDOW_MS
        return None

    def asked(self, cell: str, ride_id: str) -> None:
        self.requests.setdefault(cell, set()).add(ride_id)

    def seen_free(self, cell: str, driver_id: str) -> None:
        self.free_drivers.setdefault(cell, set()).add(driver_id)

    def percent(self, cell: str) -> int:
        return self.raised.get(cell, NORMAL_PERCENT)

    def advance(self, time_ms: int) -> Iterator[Price]:
        """Close every window that ends at `time_ms` or before.

        A cell has a new price after each window in which something was seen there. Others return to the normal price.
        """
        while (end := self.window_end()) is not None and end <= time_ms:
            cells = sorted({*self.requests, *self.free_drivers, *self.raised})
            prices = [self._price(cell, end) for cell in cells]
            self.raised = {price.cell: price.percent for price in prices if price.percent > NORMAL_PERCENT}
            self.requests, self.free_drivers = {}, {}
            self.window += 1
            yield from prices
        self.window = max(self.window, time_ms // WINDOW_MS)

    def _price(self, cell: str, end: int) -> Price:
        demand, supply = len(self.requests.get(cell, ())), len(self.free_drivers.get(cell, ()))
        return Price(cell, end, demand, supply, surge_percent(demand, supply))
