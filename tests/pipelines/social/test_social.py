"""MySocialMedia: the answers are those of a plain computation, over a restart and a burst; the ranks by themselves."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from tests.pipelines.driving import START_MS, Drive, some_events
from tests.pipelines.social import reference

from ottla.pipelines.social.job import PIPELINE
from ottla.pipelines.social.ranking import PLACES, best


@pytest.mark.timeout(240)
def test_the_answers_are_those_of_a_plain_computation(drive: Drive) -> None:
    events = some_events(PIPELINE, 3000)
    reference.verify(drive.interrupted(PIPELINE, events), events)


def test_the_launch_brings_fifty_times_as_much() -> None:
    events = itertools.takewhile(
        lambda event: event.timestamp_ms < START_MS + 240_000, PIPELINE.generate(7, START_MS, 20.0)
    )
    seconds = Counter((event.timestamp_ms - START_MS) // 1000 for event in events)
    usual = sum(seconds[second] for second in range(100)) / 100
    launch = sum(seconds[second] for second in range(121, 139)) / 18
    assert 40 < launch / usual < 60


def test_ranks_have_fixed_ties_and_the_greatest_score_of_a_post() -> None:
    assert best([("b", 2), ("a", 2), ("c", 1), ("c", 3)]) == [("c", 3), ("a", 2), ("b", 2)]
    assert len(best((f"p{number}", number) for number in range(50))) == PLACES
