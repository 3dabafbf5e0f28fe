"""A city as bytes and back: what Spark keeps for it from one batch to the next.

They are a pickle of numbers, texts and containers, and of nothing else: reading one runs no code of anybody's.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any, Final

from ottla.pipelines.taxi.city import City
from ottla.pipelines.taxi.fleet import Driver, Fleet
from ottla.pipelines.taxi.reports import Report
from ottla.pipelines.taxi.rides import Ride
from ottla.pipelines.taxi.surge import Surge

_PROTOCOL: Final = 5


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the state of a city has {module}.{name} in it, and must be plain values")


def remember(city: City) -> bytes:
    surge = city.surge
    memory = (
        [tuple(report) for report in city.reports.values()],
        [tuple(vars(driver).values()) for driver in city.fleet.drivers()],
        # In one order, so that equal cities are equal bytes.
        (surge.window, _sorted(surge.requests), _sorted(surge.free_drivers), surge.raised),
        [_values(ride) for ride in city.waiting.values()],
        [_values(ride) for ride in city.rides.values()],
    )
    return pickle.dumps(memory, _PROTOCOL)


def recall(memory: bytes) -> City:
    reports, drivers, (window, requests, free_drivers, raised), waiting, rides = _PlainUnpickler(BytesIO(memory)).load()
    return City(
        reports={report.event_id: report for report in map(Report._make, reports)},
        fleet=Fleet(Driver(*driver) for driver in drivers),
        surge=Surge(window, _sets(requests), _sets(free_drivers), raised),
        waiting=_rides(waiting),
        rides=_rides(rides),
    )


def _sorted(names: dict[str, set[str]]) -> dict[str, list[str]]:
    return {cell: sorted(some) for cell, some in names.items()}


def _sets(names: dict[str, list[str]]) -> dict[str, set[str]]:
    return {cell: set(some) for cell, some in names.items()}


def _values(ride: Ride) -> tuple[Any, ...]:
    request, *others = vars(ride).values()
    return tuple(request), *others


def _rides(values: list[tuple[Any, ...]]) -> dict[str, Ride]:
    found = (Ride(Report(*request), *others) for request, *others in values)
    return {ride.ride_id: ride for ride in found}
