"""The drivers of a city: where each was last, who is free, and who of them is nearest."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from ottla.pipelines.taxi.places import REACH_M, cells_in_reach, driver_cell, metres_between

FRESH_MS = 60_000
"""A driver who has not been heard of for longer than this is not matched."""


@dataclass
class Driver:
    """What is known of a driver; `ride_id` is the ride that keeps the driver from taking another, or empty."""

    driver_id: str
    seen_at: int
    lat: float
    lon: float
    cell: str
    ride_id: str

    @property
    def place(self) -> tuple[float, float]:
        return self.lat, self.lon


class Fleet:
    """Drivers by name, and the free ones by cell as well."""

    def __init__(self, drivers: Iterable[Driver] = ()) -> None:
        self._drivers: dict[str, Driver] = {}
        self._free: dict[str, dict[str, Driver]] = {}
        for driver in drivers:
            self._put(driver)

    def drivers(self) -> list[Driver]:
        return list(self._drivers.values())

    def get(self, driver_id: str) -> Driver | None:
        return self._drivers.get(driver_id)

    def seen(self, driver_id: str, time_ms: int, place: tuple[float, float], ride_id: str) -> Driver:
        """The driver was there then, taken by that ride or by none."""
        self._take_away(driver_id)
        driver = Driver(driver_id, time_ms, *place, driver_cell(*place), ride_id)
        self._put(driver)
        return driver

    def held_by(self, driver: Driver, ride_id: str) -> None:
        """From now on the driver is of that ride."""
        self._take_away(driver.driver_id)
        driver.ride_id = ride_id
        self._put(driver)

    def forget_before(self, time_ms: int, rides: Container[str]) -> None:
        """Drivers who are not of one of these rides, and were last seen before then, cannot be matched any more."""
        for driver in self.drivers():
            if driver.seen_at < time_ms and driver.ride_id not in rides:
                self._take_away(driver.driver_id)

    def nearest(self, place: tuple[float, float], time_ms: int) -> tuple[int, Driver] | None:
        """The free driver with the fewest whole metres to go, and these metres; of equals, the first by name."""
        near = [
            (distance_m, driver.driver_id, driver)
            for cell in cells_in_reach(driver_cell(*place))
            for driver in self._free.get(cell, {}).values()
            if (distance_m := pickup_metres(driver, place, time_ms)) is not None
        ]
        if not near:
            return None
        distance_m, _, driver = min(near, key=lambda found: found[:2])
        return distance_m, driver

    def _put(self, driver: Driver) -> None:
        self._drivers[driver.driver_id] = driver
        if not driver.ride_id:
            self._free.setdefault(driver.cell, {})[driver.driver_id] = driver

    def _take_away(self, driver_id: str) -> None:
        driver = self._drivers.pop(driver_id, None)
        if driver is not None and not driver.ride_id:
            del self._free[driver.cell][driver_id]


def pickup_metres(driver: Driver, place: tuple[float, float], time_ms: int) -> int | None:
    """How far a free driver has to go, in whole metres; None if that is too far or the driver was lost sight of."""
    if time_ms - driver.seen_at > FRESH_MS:
        return None
    distance_m = round(metres_between(driver.place, place))
    return distance_m if distance_m <= REACH_M else None
