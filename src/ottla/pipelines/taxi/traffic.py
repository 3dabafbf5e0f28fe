"""Drivers and users of some cities, moved through their days by a seed.

Drivers wander until they are matched, then drive to their user and to where the user wants to go, as the dispatcher
tells them: it is asked at every step, and since its answers depend on reports alone, so does everything here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from ottla.pipelines.taxi.city import City
from ottla.pipelines.taxi.places import metres_between
from ottla.pipelines.taxi.reports import DROPOFF, PICKUP, POSITION, REQUEST, Report
from ottla.pipelines.taxi.rides import Match

CENTRES = {"brno": (49.1951, 16.6068), "prague": (50.0755, 14.4378), "vienna": (48.2082, 16.3738)}
STEP_MS = 5_000
METRES_A_STEP = 90.0
METRES_A_DEGREE = 111_195.0

Place = tuple[float, float]


@dataclass
class _Car:
    driver_id: str
    place: Place
    ride_id: str = ""
    pickup: Place | None = None
    destination: Place | None = None


@dataclass
class _Streets:
    """One city: its cars, from where to where those who wait want to go, and a dispatcher of its own."""

    name: str
    cars: dict[str, _Car]
    trips: dict[str, tuple[Place, Place]] = field(default_factory=dict)
    dispatcher: City = field(default_factory=City)


class Traffic:
    """So many drivers in each city, and so many requests for each of them in ten minutes, more or less."""

    def __init__(self, seed: int, drivers: int = 12, requests_a_driver: float = 4.0) -> None:
        self._random = random.Random(seed)
        self._seed = seed
        self._requests_a_step = drivers * requests_a_driver * STEP_MS / 600_000
        self._requests = 0
        self._streets = [self._settle(name, drivers) for name in CENTRES]

    def reports(self, start_ms: int) -> Iterator[tuple[str, Report]]:
        """Cities and what is reported in them, without an end, in the order of event time."""
        for now in count(start_ms, STEP_MS):
            step = [(streets.name, report) for streets in self._streets for report in self._step(streets, now)]
            yield from sorted(step, key=lambda found: found[1])

    def _settle(self, name: str, drivers: int) -> _Streets:
        names = [f"{name}-driver-{number}" for number in range(drivers)]
        return _Streets(name, {name_: _Car(name_, self._near(CENTRES[name], 2500)) for name_ in names})

    def _step(self, streets: _Streets, now: int) -> list[Report]:
        reports = [self._drive(streets, car, now) for car in streets.cars.values()]
        while self._random.random() < self._requests_a_step / (1 + self._requests_a_step):
            reports.append(self._ask(streets, now))
        for report in reports:
            streets.dispatcher.report(report)
        for outcome in streets.dispatcher.advance(now + STEP_MS):
            if isinstance(outcome, Match):
                origin, destination = streets.trips.pop(outcome.ride_id)
                if outcome.driver_id is not None:
                    car = streets.cars[outcome.driver_id]
                    car.ride_id, car.pickup, car.destination = outcome.ride_id, origin, destination
        return reports

    def _drive(self, streets: _Streets, car: _Car, now: int) -> Report:
        """One step towards where the car is to go; who arrives says so."""
        goal = car.pickup or car.destination or self._near(car.place, METRES_A_STEP)
        car.place = _towards(car.place, goal)
        kind, ride_id = POSITION, car.ride_id
        if car.ride_id and car.place == goal:
            if car.pickup is not None:
                kind, car.pickup = PICKUP, None
            else:
                kind, car.destination, car.ride_id = DROPOFF, None, ""
        return self._report(now, kind, car.place, driver_id=car.driver_id, ride_id=ride_id)

    def _ask(self, streets: _Streets, now: int) -> Report:
        """A user asks for a ride: many near the centre, where drivers become scarce, some far out."""
        self._requests += 1
        # No ride of another run has the same name: it may still be known there.
        ride_id = f"{streets.name}-ride-{self._seed:x}-{self._requests}"
        origin = self._near(CENTRES[streets.name], self._random.choice((600, 600, 2500, 7000)))
        streets.trips[ride_id] = (origin, self._near(origin, 1800))
        user_id = f"{streets.name}-user-{self._random.randrange(1000)}"
        return self._report(now, REQUEST, origin, user_id=user_id, ride_id=ride_id)

    def _report(
        self, now: int, kind: str, place: Place, driver_id: str = "", user_id: str = "", ride_id: str = ""
    ) -> Report:
        """Some time within the step, in tenths of a second, so that some come at the same time."""
        event_time = now + 100 * self._random.randrange(STEP_MS // 100)
        event_id = f"{self._random.getrandbits(64):016x}"
        return Report(event_time, event_id, kind, *place, driver_id, user_id, ride_id)

    def _near(self, place: Place, metres: float) -> Place:
        angle = self._random.uniform(0, 2 * math.pi)
        return _moved(place, angle, metres * math.sqrt(self._random.random()))


def _towards(place: Place, goal: Place) -> Place:
    distance = metres_between(place, goal)
    if distance <= METRES_A_STEP:
        return goal
    share = METRES_A_STEP / distance
    return _rounded(place[0] + share * (goal[0] - place[0]), place[1] + share * (goal[1] - place[1]))


def _moved(place: Place, angle: float, metres: float) -> Place:
    north, east = metres * math.cos(angle), metres * math.sin(angle)
    width = METRES_A_DEGREE * math.cos(math.radians(place[0]))
    return _rounded(place[0] + north / METRES_A_DEGREE, place[1] + east / width)


def _rounded(latitude: float, longitude: float) -> Place:
    """A tenth of a metre is as exact as anybody's position."""
    return round(latitude, 6), round(longitude, 6)
