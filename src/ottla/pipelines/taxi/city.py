"""One city: everything that is reported in it, handled in the order of event time.

Reports wait until the watermark has passed them. Then nothing can come any more that belongs before them, so they are
handled in an order that depends on the reports alone: by time, and of the same time by id. It makes no difference in
which batches they came, or how often: a copy of a report either finds it waiting, or is behind the watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from ottla.pipelines.taxi.fleet import FRESH_MS, Driver, Fleet, pickup_metres
from ottla.pipelines.taxi.places import price_cell
from ottla.pipelines.taxi.reports import DROPOFF, REQUEST, Report
from ottla.pipelines.taxi.rides import Cost, Match, Ride
from ottla.pipelines.taxi.surge import Price, Surge

Outcome = Match | Cost | Price

PATIENCE_MS = 120_000
"""How long a user waits for a driver to become free."""

TAKING_MS = 30_000
"""How long a driver may take to learn of a match: reports without its ride make no difference until then."""

LONGEST_RIDE_MS = 3 * 3_600_000
"""A ride that has not ended so long after its match is given up, and its driver free."""


@dataclass
class City:
    """The state of a city. `waiting` and `rides` are in the order of request and of match."""

    reports: dict[str, Report] = field(default_factory=dict)
    fleet: Fleet = field(default_factory=Fleet)
    surge: Surge = field(default_factory=Surge)
    waiting: dict[str, Ride] = field(default_factory=dict)
    rides: dict[str, Ride] = field(default_factory=dict)

    def report(self, report: Report) -> None:
        """Have a report wait for its turn."""
        self.reports.setdefault(report.event_id, report)

    def advance(self, watermark_ms: int) -> Iterator[Outcome]:
        """Handle all that lies before the watermark."""
        due = sorted(report for report in self.reports.values() if report.event_time < watermark_ms)
        for report in due:
            del self.reports[report.event_id]
            yield from self._time_is(report.event_time)
            yield from self._handle(report)
        yield from self._time_is(watermark_ms)

    def next_due(self) -> int | None:
        """The earliest time that a later watermark has to pass for `advance` to have something to do."""
        due = [report.event_time for report in self.reports.values()]
        due += [ride.request.event_time + PATIENCE_MS for ride in self.waiting.values()]
        if (end := self.surge.window_end()) is not None:
            due.append(end - 1)
        return min(due, default=None)

    def _time_is(self, now: int) -> Iterator[Match | Price]:
        """What happens because time goes by."""
        prices = list(self.surge.advance(now))
        if prices:
            self.fleet.forget_before(now - FRESH_MS, self.rides)
        yield from prices
        for ride in _while(self.waiting, lambda ride: now - ride.request.event_time > PATIENCE_MS):
            del self.waiting[ride.ride_id]
            yield ride.outcome(ride.request.event_time + PATIENCE_MS, None)
        for ride in _while(self.rides, lambda ride: now - ride.matched_at > LONGEST_RIDE_MS):
            self._give_up(ride)

    def _handle(self, report: Report) -> Iterator[Match | Cost]:
        if report.kind == REQUEST:
            yield from self._asked(report)
            return
        ride = self._ride_of(report.driver_id)
        if ride is not None and self._ends(ride, report):
            del self.rides[ride.ride_id]
            if ride.picked_up_at is not None:
                yield ride.cost(ride.picked_up_at)
            ride = None
        yield from self._seen(report, ride)

    def _ends(self, ride: Ride, report: Report) -> bool:
        """Whether the ride of this driver is over. It is, too, if the driver should know of it and tells of none."""
        if report.ride_id != ride.ride_id:
            return report.event_time - ride.matched_at > TAKING_MS
        ride.reported(report)
        return report.kind == DROPOFF

    def _asked(self, report: Report) -> Iterator[Match]:
        """The nearest free driver takes the ride; while there is none, the user waits."""
        if report.ride_id in self.waiting or report.ride_id in self.rides:
            return
        cell = price_cell(*report.place)
        ride = Ride(report, self.surge.percent(cell))
        self.surge.asked(cell, ride.ride_id)
        found = self.fleet.nearest(report.place, report.event_time)
        if found is None:
            self.waiting[ride.ride_id] = ride
        else:
            distance_m, driver = found
            yield self._take(ride, driver, report.event_time, distance_m)

    def _seen(self, report: Report, ride: Ride | None) -> Iterator[Match]:
        """A driver was there. One who is free takes the ride of whoever in reach has waited longest."""
        elsewhere = report.ride_id if report.kind != DROPOFF else ""
        ride_id = elsewhere if ride is None else ride.ride_id
        driver = self.fleet.seen(report.driver_id, report.event_time, report.place, ride_id)
        if driver.ride_id:
            return
        self.surge.seen_free(price_cell(*report.place), driver.driver_id)
        for waiting in self.waiting.values():
            distance_m = pickup_metres(driver, waiting.request.place, report.event_time)
            if distance_m is not None:
                del self.waiting[waiting.ride_id]
                yield self._take(waiting, driver, report.event_time, distance_m)
                return

    def _take(self, ride: Ride, driver: Driver, now: int, distance_m: int) -> Match:
        ride.driver_id, ride.matched_at = driver.driver_id, now
        self.rides[ride.ride_id] = ride
        self.fleet.held_by(driver, ride.ride_id)
        return ride.outcome(now, distance_m)

    def _give_up(self, ride: Ride) -> None:
        del self.rides[ride.ride_id]
        driver = self.fleet.get(ride.driver_id)
        if driver is not None:
            self.fleet.seen(driver.driver_id, driver.seen_at, driver.place, "")

    def _ride_of(self, driver_id: str) -> Ride | None:
        """The ride that the driver was matched with and that has not ended."""
        driver = self.fleet.get(driver_id)
        ride = None if driver is None else self.rides.get(driver.ride_id)
        return ride if ride is not None and ride.driver_id == driver_id else None


def _while(rides: dict[str, Ride], overdue: Callable[[Ride], bool]) -> list[Ride]:
    """Those at the beginning, which are the oldest, for which it is true."""
    return list(takewhile(overdue, rides.values()))
