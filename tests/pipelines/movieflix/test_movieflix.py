"""MovieFlix end to end: the answers are those of a plain computation, over a restart; and what is rare there."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from tests.pipelines.driving import START_MS, Drive, some_events
from tests.pipelines.movieflix import reference

from ottla.pipelines.frame.generating import Event
from ottla.pipelines.movieflix.job import PIPELINE
from ottla.pipelines.movieflix.topics import CATALOGUE


@pytest.mark.timeout(240)
def test_the_answers_are_those_of_a_plain_computation(drive: Drive) -> None:
    events = [*_broken_shows(), *some_events(PIPELINE, 3000)]
    reference.verify(drive.interrupted(PIPELINE, events, batches=2), events)


def _broken_shows() -> list[Event]:
    """No JSON, half a show, the id of another one, one that is there no more, and one of the lowest rank there is."""
    fields = {"show_id": "show-00", "title": "Twice", "genres": ["crime"], "rank": 0, "available_from": 0}
    values = {
        "show-90": b"not json at all",
        "show-91": b'{"show_id":"show-91","genres":["drama"]}',
        "show-92": json.dumps(fields).encode(),
        "show-93": None,
        "show-94": json.dumps({**fields, "show_id": "show-94", "rank": -(2**31)}).encode(),
    }
    return [Event(CATALOGUE, key.encode(), value, START_MS) for key, value in values.items()]


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = (list(itertools.islice(PIPELINE.generate(seed, START_MS, 5.0), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert [event.timestamp_ms for event in first] == sorted(event.timestamp_ms for event in first)


def test_of_views_of_the_same_time_that_with_the_greatest_id_says_where_to_go_on(pipeline_spark: Any) -> None:
    from ottla.pipelines.movieflix.transform import resume

    views = pipeline_spark.sql(
        "SELECT id AS event_id, timestamp_millis(time) AS event_time, 'u' AS user_id, 's' AS show_id, "
        "position_s, false AS finished FROM VALUES ('c', 1, 30), ('a', 2, 10), ('b', 2, 20) AS (id, time, position_s)"
    )
    (row,) = resume(views).collect()
    assert row.key == "u|s"
    assert json.loads(row.value)["position_s"] == 20


def test_the_next_show_is_the_best_that_is_left(pipeline_spark: Any) -> None:
    from ottla.pipelines.movieflix.transform import in_one_row, next_shows

    catalogue = pipeline_spark.createDataFrame(
        [
            ("both", "Both", ["crime", "drama"], 0, 0),
            ("crime-2", "Crime 2", ["crime"], 2, 0),
            ("crime-1", "Crime 1", ["crime"], 1, 500),
            ("drama", "Drama", ["drama"], 3, 0),
            ("tomorrow", "Tomorrow", ["crime"], 0, 501),
        ],
        "show_id STRING, title STRING, genres ARRAY<STRING>, rank INT, available_from BIGINT",
    )
    best_first = ["crime-1", "crime-2", "both", "drama"]
    profiles = pipeline_spark.createDataFrame(
        [(f"has begun {count}", {"crime": 100, "drama": 7}, best_first[:count], 500) for count in range(5)],
        "user_id STRING, seconds MAP<STRING, BIGINT>, begun ARRAY<STRING>, as_of BIGINT",
    )
    found = next_shows(profiles, in_one_row(catalogue)).orderBy("user_id").select("next.show_id").collect()
    assert [row.show_id for row in found] == [*best_first, None]
