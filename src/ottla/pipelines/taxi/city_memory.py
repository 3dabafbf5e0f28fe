"""A city as text and back: what Spark keeps for it from one batch to the next.

It is JSON by names of fields, so that what an older version wrote stays readable.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ottla.pipelines.taxi.city import City
from ottla.pipelines.taxi.fleet import Driver, Fleet
from ottla.pipelines.taxi.reports import Report
from ottla.pipelines.taxi.rides import Ride
from ottla.pipelines.taxi.surge import Surge


def remember(city: City) -> str:
    memory = {
        "reports": [report._asdict() for report in city.reports.values()],
        "drivers": [asdict(driver) for driver in city.fleet.drivers()],
        "surge": asdict(city.surge),
        "waiting": [_ride_as_dict(ride) for ride in city.waiting.values()],
        "rides": [_ride_as_dict(ride) for ride in city.rides.values()],
    }
    return json.dumps(memory, default=sorted, separators=(",", ":"))


def recall(text: str) -> City:
    memory = json.loads(text)
    surge = Surge(**memory["surge"])
    for cells in (surge.requests, surge.free_drivers):
        cells.update({cell: set(names) for cell, names in cells.items()})
    return City(
        reports={report["event_id"]: Report(**report) for report in memory["reports"]},
        fleet=Fleet(Driver(**driver) for driver in memory["drivers"]),
        surge=surge,
        waiting=_rides(memory["waiting"]),
        rides=_rides(memory["rides"]),
    )


def _ride_as_dict(ride: Ride) -> dict[str, Any]:
    return {**vars(ride), "request": ride.request._asdict()}


def _rides(rides: list[dict[str, Any]]) -> dict[str, Ride]:
    found = (
        Ride(**{**ride, "request": Report(**ride["request"]), "place": (ride["place"][0], ride["place"][1])})
        for ride in rides
    )
    return {ride.ride_id: ride for ride in found}
