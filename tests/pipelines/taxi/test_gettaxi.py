"""GetTaxi end to end: the answers are those of a plain computation, over a restart."""

from __future__ import annotations

import itertools

import pytest
from tests.pipelines.driving import START_MS, Drive, some_events
from tests.pipelines.taxi import reference

from ottla.pipelines.taxi.job import PIPELINE


@pytest.mark.timeout(240)
def test_the_answers_are_those_of_a_plain_computation(drive: Drive) -> None:
    events = some_events(PIPELINE, 3000, rate=6.0)
    reference.verify(drive.interrupted(PIPELINE, events, batches=2), events)


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = (list(itertools.islice(PIPELINE.generate(seed, START_MS, 5.0), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert [event.timestamp_ms for event in first] == sorted(event.timestamp_ms for event in first)
