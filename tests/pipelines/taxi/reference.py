"""GetTaxi's answers, computed from docs/pipelines/GETTAXI.md alone: slowly, in plain Python, from what was sent.

It looks at every driver for every ride and at every minute for every price, and shares nothing with the pipeline.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

import h3
from tests.pipelines.driving import Run
from tests.pipelines.judged import Fields, Judged, judge, verify_rejects

from ottla.pipelines.frame.generating import Event

LATENESS_MS = 10_000
EARTH_M = 6_371_007.180918475
_DEMANDS = {"gettaxi.reports": {"city": str, "kind": str, "lat": float, "lon": float}}
_NAMES = {
    "position": ("driver_id",),
    "pickup": ("driver_id", "ride_id"),
    "dropoff": ("driver_id", "ride_id"),
    "request": ("user_id", "ride_id"),
}

Rows = list[Fields]


@dataclass
class Answers:
    """All records of each topic, by city and in the order of time."""

    matches: Rows = field(default_factory=list)
    surge: Rows = field(default_factory=list)
    costs: Rows = field(default_factory=list)


def verify(run: Run, events: Sequence[Event]) -> None:
    judged = judged_reports(events)
    verify_rejects(run, judged)
    reports = [fields for _, fields in judged.once_each()]
    expected = answers(reports)
    assert any(match["driver_id"] is None for match in expected.matches), "nobody waited in vain"
    assert any(cost["surge_percent"] > 100 for cost in expected.costs), "no ride had a raised price"
    for topic in ("matches", "surge", "costs"):
        assert in_order(run.letters(f"gettaxi.{topic}")) == in_order(getattr(expected, topic)), topic
    assert run.table("gettaxi.surge") == {f"{one['city']}|{one['cell']}": one for one in expected.surge}
    verify_lake(run, reports, expected)


def judged_reports(events: Sequence[Event]) -> Judged:
    return judge(events, _DEMANDS, LATENESS_MS, _holds)


def verify_lake(run: Run, reports: Rows, expected: Answers) -> None:
    """Each report is there once, in the folder of its date; and with each match, they make the same costs again."""
    rows = [{name: value for name, value in row.items() if value is not None} for row in run.lake_rows("reports")]
    for row in rows:
        assert row.pop("date") == str(datetime.fromtimestamp(row["event_time"] / 1000, UTC).date())
    assert in_order(rows) == in_order(reports)
    rows.sort(key=lambda row: (row["event_time"], row["event_id"]))
    for cost in expected.costs:
        (match,) = (match for match in expected.matches if match["ride_id"] == cost["ride_id"])
        told = [row for row in rows if row.get("ride_id") == cost["ride_id"] and row["kind"] != "request"]
        trail = [row for row in told if row["driver_id"] == match["driver_id"]]
        assert cost_of(match, [row for row in trail if row["event_time"] >= match["decided_at"]]) == cost


def in_order(rows: Rows) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def answers(reports: Rows) -> Answers:
    """From reports that count, once each."""
    found = Answers()
    ordered = sorted(reports, key=lambda one: (one["event_time"], one["event_id"]))
    watermark = ordered[-1]["event_time"] - 2 * LATENESS_MS
    for city in sorted({report["city"] for report in ordered}):
        _City(city, watermark, found).live([report for report in ordered if report["city"] == city])
    return found


def _holds(topic: str, fields: Fields) -> bool:
    is_on_map = abs(fields["lat"]) <= 90 and abs(fields["lon"]) <= 180
    return is_on_map and all(fields.get(name) for name in _NAMES.get(fields["kind"], ("unknown",)))


def metres(one: Fields, other: Fields) -> float:
    """By the haversine formula."""
    south, north = math.radians(one["lat"]), math.radians(other["lat"])
    rise, run = north - south, math.radians(other["lon"] - one["lon"])
    half = math.sin(rise / 2) ** 2 + math.cos(south) * math.cos(north) * math.sin(run / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(half))


class _City:
    def __init__(self, name: str, watermark: int, found: Answers) -> None:
        self.name, self.watermark, self.found = name, watermark, found
        self.last: dict[str, Fields] = {}
        self.match_of: dict[str, Fields] = {}
        self.requests: list[tuple[Fields, int]] = []
        self.trail: dict[str, Rows] = {}
        self.seen: dict[tuple[str, int], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))

    def live(self, reports: Rows) -> None:
        for report in reports:
            if report["event_time"] < self.watermark:
                self.pass_time(report["event_time"])
                (self.ask if report["kind"] == "request" else self.hear)(report)
        self.pass_time(self.watermark)
        self.tell_prices()

    def pass_time(self, now: int) -> None:
        for request, percent in [one for one in self.requests if now > one[0]["event_time"] + 120_000]:
            self.requests.remove((request, percent))
            self.tell_match(request, percent, None, request["event_time"] + 120_000, None)
        for driver, match in list(self.match_of.items()):
            if now > match["decided_at"] + 3 * 3600_000:
                del self.match_of[driver]
                self.last[driver] = {**self.last[driver], "ride_id": None}

    def is_free(self, driver: str) -> bool:
        return driver not in self.match_of and not self.last[driver].get("ride_id")

    def ask(self, request: Fields) -> None:
        ride, now = request["ride_id"], request["event_time"]
        if any(match["ride_id"] == ride for match in self.match_of.values()):
            return
        if any(waiting["ride_id"] == ride for waiting, _ in self.requests):
            return
        cell, minute = h3.latlng_to_cell(request["lat"], request["lon"], 7), now // 60_000
        self.seen[cell, minute][0].add(ride)
        percent = self.percent(cell, minute - 1)
        near = sorted(
            (round(metres(last, request)), driver)
            for driver, last in self.last.items()
            if self.is_free(driver) and now - last["event_time"] <= 60_000
        )
        if near and near[0][0] <= 2000:
            self.tell_match(request, percent, near[0][1], now, near[0][0])
        else:
            self.requests.append((request, percent))

    def hear(self, report: Fields) -> None:
        driver, now = report["driver_id"], report["event_time"]
        match = self.match_of.get(driver)
        if match is not None:
            if report.get("ride_id") == match["ride_id"]:
                self.trail[driver].append(report)
                if report["kind"] == "dropoff":
                    self.tell_cost(self.match_of.pop(driver))
            elif now > match["decided_at"] + 30_000:
                self.tell_cost(self.match_of.pop(driver))
        self.last[driver] = {**report, "ride_id": None} if report["kind"] == "dropoff" else report
        if not self.is_free(driver):
            return
        self.seen[h3.latlng_to_cell(report["lat"], report["lon"], 7), now // 60_000][1].add(driver)
        for request, percent in self.requests:
            if (distance := round(metres(report, request))) <= 2000:
                self.requests.remove((request, percent))
                self.tell_match(request, percent, driver, now, distance)
                return

    def percent(self, cell: str, minute: int) -> int:
        asked, free = self.seen.get((cell, minute), ((), ()))
        return min(300, max(100, 100 * len(asked) // max(len(free), 1)))

    def tell_match(self, request: Fields, percent: int, driver: str | None, now: int, far: int | None) -> None:
        match = {
            "city": self.name,
            "ride_id": request["ride_id"],
            "user_id": request["user_id"],
            "driver_id": driver,
            "requested_at": request["event_time"],
            "decided_at": now,
            "distance_m": far,
            "surge_percent": percent,
        }
        self.found.matches.append(match)
        if driver is not None:
            self.match_of[driver], self.trail[driver] = match, []

    def tell_cost(self, match: Fields) -> None:
        cost = cost_of(match, self.trail[match["driver_id"]])
        if cost is not None:
            self.found.costs.append(cost)

    def tell_prices(self) -> None:
        after_raised = {(c, m + 1): (set[str](), set[str]()) for c, m in self.seen if self.percent(c, m) > 100}
        for (cell, minute), (asked, free) in sorted((after_raised | dict(self.seen)).items()):
            valid_from = (minute + 1) * 60_000
            if valid_from <= self.watermark:
                self.found.surge.append(
                    {
                        "city": self.name,
                        "cell": cell,
                        "valid_from": valid_from,
                        "demand": len(asked),
                        "supply": len(free),
                        "percent": self.percent(cell, minute),
                    }
                )


def cost_of(match: Fields, trail: Rows) -> Fields | None:
    """What a match cost, from the reports of its driver that tell of its ride; None if nobody was picked up."""
    first = next((number for number, report in enumerate(trail) if report["kind"] == "pickup"), None)
    if first is None:
        return None
    way = trail[first:]
    distance_m = round(sum(metres(here, there) for here, there in pairwise(way)))
    duration_s = (way[-1]["event_time"] - way[0]["event_time"]) // 1000
    # In thousandths of a cent times percent, of which a cent has 100,000.
    exact = (250_000 + 120 * distance_m + 500 * duration_s) * match["surge_percent"]
    return {
        "city": match["city"],
        "ride_id": match["ride_id"],
        "user_id": match["user_id"],
        "driver_id": match["driver_id"],
        "picked_up_at": way[0]["event_time"],
        "dropped_off_at": way[-1]["event_time"],
        "distance_m": distance_m,
        "duration_s": duration_s,
        "surge_percent": match["surge_percent"],
        "cost_cents": (exact + 50_000) // 100_000,
    }
