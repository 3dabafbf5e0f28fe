"""GetTaxi end to end: the answers are those of a plain computation, over a restart."""

from __future__ import annotations

import itertools

import pytest
from tests.pipelines.driving import START_MS, Drive, some_events
from tests.pipelines.taxi import reference

from ottla.pipelines.taxi.job import PIPELINE
from ottla.pipelines.taxi.traffic import Traffic


@pytest.mark.timeout(240)
def test_the_answers_are_those_of_a_plain_computation(drive: Drive) -> None:
    events = some_events(PIPELINE, 3000, rate=6.0)
    reference.verify(drive.interrupted(PIPELINE, events, batches=2), events)


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = (list(itertools.islice(PIPELINE.generate(seed, START_MS, 5.0), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert [event.timestamp_ms for event in first] == sorted(event.timestamp_ms for event in first)


def test_made_up_traffic_remembers_only_rides_that_are_still_to_be_answered() -> None:
    traffic = Traffic(1, drivers=2, requests_a_driver=40.0)
    ends_at = START_MS + 3_600_000
    asked = [
        report.ride_id
        for _, report in itertools.takewhile(lambda one: one[1].event_time < ends_at, traffic.reports(START_MS))
        if report.kind == "request"
    ]
    remembered = {ride_id for streets in traffic._streets for ride_id in streets.trips}
    open_rides = {ride_id for streets in traffic._streets for ride_id in streets.dispatcher.waiting}
    open_rides |= {one.ride_id for streets in traffic._streets for one in streets.dispatcher.reports.values()}
    assert remembered <= open_rides
    assert len(remembered) < len(asked) / 4
