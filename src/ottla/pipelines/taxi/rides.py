"""A ride from the request to the drop-off, and what is told of it: who took it, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.pipelines.taxi.fares import cost_cents
from ottla.pipelines.taxi.places import metres_between
from ottla.pipelines.taxi.reports import PICKUP, Report


class Match(NamedTuple):
    """What came of a request; without a driver, nobody was free near enough in time."""

    ride_id: str
    user_id: str
    driver_id: str | None
    requested_at: int
    decided_at: int
    distance_m: int | None
    surge_percent: int


class Cost(NamedTuple):
    """What a ride that has ended costs, and why."""

    ride_id: str
    user_id: str
    driver_id: str
    picked_up_at: int
    dropped_off_at: int
    distance_m: int
    duration_s: int
    surge_percent: int
    cost_cents: int


@dataclass
class Ride:
    """From the request to the drop-off; metres are counted from the pick-up on."""

    request: Report
    surge_percent: int
    driver_id: str = ""
    matched_at: int = 0
    picked_up_at: int | None = None
    reported_at: int = 0
    place: tuple[float, float] = (0.0, 0.0)
    metres: float = 0.0

    @property
    def ride_id(self) -> str:
        return self.request.ride_id

    def outcome(self, decided_at: int, distance_m: int | None) -> Match:
        """What came of the request: the driver at that distance, or none."""
        driver_id = None if distance_m is None else self.driver_id
        request = self.request
        return Match(
            self.ride_id, request.user_id, driver_id, request.event_time, decided_at, distance_m, self.surge_percent
        )

    def reported(self, report: Report) -> None:
        """The driver reports, and tells of this ride. The way counts from the first pick-up on."""
        if self.picked_up_at is not None:
            self.metres += metres_between(self.place, report.place)
        elif report.kind == PICKUP:
            self.picked_up_at = report.event_time
        self.place, self.reported_at = report.place, report.event_time

    def cost(self, picked_up_at: int) -> Cost:
        """As of the last report."""
        distance_m, duration_s = round(self.metres), (self.reported_at - picked_up_at) // 1000
        return Cost(
            self.ride_id,
            self.request.user_id,
            self.driver_id,
            picked_up_at,
            self.reported_at,
            distance_m,
            duration_s,
            self.surge_percent,
            cost_cents(distance_m, duration_s, self.surge_percent),
        )
