"""What drivers' and users' phones send, with the disorder of real ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ottla.pipelines.frame.generating import Disorder, Event, json_event
from ottla.pipelines.taxi.reports import REQUEST, Report
from ottla.pipelines.taxi.topics import REPORTS

LATENESS_SECONDS = 10


def generate(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """About `rate` events a second, nearly all of them positions of drivers."""
    # Here, so that the pipeline can be listed where H3 is not installed.
    from ottla.pipelines.taxi.traffic import CENTRES, STEP_MS, Traffic

    drivers = max(1, round(rate * STEP_MS / 1000 / len(CENTRES)))
    reports = Traffic(seed, drivers).reports(start_ms)
    events = (_event(city, report) for city, report in reports)
    return Disorder(LATENESS_SECONDS * 1000).applied(events, random.Random(seed))


def _event(city: str, report: Report) -> Event:
    fields = {name: value for name, value in report._asdict().items() if value != ""}
    sender = report.user_id if report.kind == REQUEST else report.driver_id
    return json_event(REPORTS, sender, report.event_time, city=city, **fields)
