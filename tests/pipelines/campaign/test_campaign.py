"""Campaign compare: the answers are those of a plain computation, over a restart; the statistics by themselves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.pipelines.campaign import reference
from tests.pipelines.driving import START_MS, Drive, some_events

from ottla.pipelines.campaign.events import CAMPAIGNS, CLICKS, PURCHASES, VIEWS
from ottla.pipelines.campaign.job import COMPARISONS, PIPELINE
from ottla.pipelines.campaign.statistics import compare, wilson
from ottla.pipelines.frame.generating import Event, json_event

_WHOLE_STAGE = "spark.sql.codegen.wholeStage"


@pytest.mark.timeout(240)
def test_the_answers_are_those_of_a_plain_computation(drive: Drive) -> None:
    events = [*_broken_campaigns(), *some_events(PIPELINE, 3000)]
    middle = len(events) // 3
    sent_ms = events[middle].timestamp_ms
    events[middle:middle] = [*_oversized(sent_ms), *_bought_unseen(sent_ms)]
    reference.verify(drive.interrupted(PIPELINE, events), events)


def test_campaigns_may_be_announced_after_their_first_visits(drive: Drive, pipeline_spark: Any) -> None:
    """Nothing is compared until then, and nothing fails. Without code that is generated, as pipelines run, Spark does
    not look at what it joins with nothing."""
    before = pipeline_spark.conf.get(_WHOLE_STAGE)
    pipeline_spark.conf.set(_WHOLE_STAGE, "false")
    events = some_events(PIPELINE, 600)
    announced = [event for event in events if event.topic == CAMPAIGNS]
    visits = [event for event in events if event.topic != CAMPAIGNS]
    try:
        assert drive.at_once(PIPELINE, visits[:200]).table(COMPARISONS) == {}
        assert drive.go_on(PIPELINE, [*announced, *visits[200:]]).table(COMPARISONS)
    finally:
        pipeline_spark.conf.set(_WHOLE_STAGE, before)


def _broken_campaigns() -> list[Event]:
    """Of a campaign that is visited, before it is announced; and of such that nobody visits."""
    values = {
        "free-shipping-a": b"not json at all",
        "no-experiment": b'{"arm":"A"}',
        "third-arm": b'{"experiment":"x","arm":"C"}',
    }
    return [Event(CAMPAIGNS, key.encode(), value, START_MS) for key, value in values.items()]


def _bought_unseen(sent_ms: int) -> list[Event]:
    """Purchases in an experiment that nobody has viewed; one of them is larger than all of them may be together."""
    campaigns = [
        json_event(CAMPAIGNS, f"unseen-{arm}", sent_ms, experiment="unseen", arm=arm.upper()) for arm in ("a", "b")
    ]
    amounts = (100_000_000_000, 100_000_000_000, 2**63 - 1)
    return campaigns + [
        json_event(
            PURCHASES,
            "u9",
            sent_ms,
            event_id=f"unseen-{number}",
            event_time=sent_ms,
            campaign_id="unseen-b",
            user_id="u9",
            amount_cents=amount,
        )
        for number, amount in enumerate(amounts)
    ]


def _oversized(sent_ms: int) -> list[Event]:
    """Records that a letter has no room for, or no words."""
    return [
        Event(VIEWS, b"u1", b"x" * 900_000, sent_ms),
        Event(CLICKS, b"u2", b'{"' * 250_000, sent_ms),
        Event(VIEWS, b"k" * 400_000, b"\0" * 400_000, sent_ms),
        Event(PURCHASES, b"\xff\xfeu", b"\x80\x81 no text", sent_ms),
        Event(VIEWS, None, b"\xc3(" * 200_000, sent_ms),
    ]


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = (list(itertools.islice(PIPELINE.generate(seed, START_MS, 5.0), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert [event.timestamp_ms for event in first] == sorted(event.timestamp_ms for event in first)


def test_an_interval_covers_what_is_known_of_it() -> None:
    # Newcombe (1998), table II, the example 56/70 against 48/80, by his method 10: 0.0524 to 0.3339.
    found = compare(80, 48, 70, 56)
    assert found.difference == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=5e-5)
    assert found.high == pytest.approx(0.3339, abs=5e-5)


def test_no_sales_are_no_certainty() -> None:
    low, high = wilson(0, 10)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(0.2775, abs=5e-5)
    assert compare(10, 0, 10, 0).p_value == 1.0


@pytest.mark.parametrize("counts", [(0, 0, 5, 1), (5, 1, 0, 0), (5, 6, 5, 1)])
def test_what_cannot_be_compared_is_not(counts: tuple[int, int, int, int]) -> None:
    assert set(compare(*counts)) == {None}
