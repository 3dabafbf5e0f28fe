"""Checkpoints that another version of Ottla has written: they are refused untouched, and `--begin` puts them aside."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.driving import START_MS, Drive, Run, send_all
from tests.spark.conftest import Target

from ottla.pipelines.frame import job
from ottla.pipelines.frame.beginning import NothingPublished, starting_offsets
from ottla.pipelines.frame.checkpoints import LAYOUT, OtherLayout
from ottla.pipelines.frame.generating import Event, json_event
from ottla.pipelines.frame.pipeline import COMPACTED, Answer, Input, Pipeline, Query, Topic, ToTopic
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.topics import ensure_topics
from ottla.pipelines.ingestion.job import PIPELINE as INGESTION

pytest.importorskip("pyspark.sql", reason="pyspark is not installed")

_numbers = itertools.count(1)
PAGES = ("a", "b", "c")


def _pages(streams: Any) -> Any:
    """How often each page was visited."""
    counts = streams.events().groupBy("page").count()
    return counts.selectExpr("page AS key", "to_json(named_struct('visits', count)) AS value")


@pytest.fixture
def counting(ottla_target: Target) -> Pipeline:
    """A small pipeline, with topics and groups that no other test has."""
    name = f"counting{next(_numbers)}"
    pages = Topic(f"{name}.pages", 1, COMPACTED)
    pipeline = Pipeline(
        name=name,
        title="Visits of each page",
        inputs=(Input(Topic(f"{name}.visits"), "page STRING"),),
        results=(pages,),
        queries=(Query("pages", (Answer(_pages, ToTopic(pages.name)),)),),
        generate=lambda seed, start_ms, rate: iter(()),
    )
    ensure_topics(pipeline, {"bootstrap.servers": ottla_target.bootstrap})
    return pipeline


def visits(pipeline: Pipeline, numbers: Iterable[int]) -> Iterator[Event]:
    """As many of each page."""
    for number in numbers:
        fields = {"event_id": f"e{number}", "event_time": START_MS + number, "page": PAGES[number % len(PAGES)]}
        yield json_event(f"{pipeline.name}.visits", f"u{number}", START_MS + number, **fields)


def counted(pipeline: Pipeline, place: Place) -> dict[str, int]:
    return {key: row["visits"] for key, row in Run(pipeline, place).table(f"{pipeline.name}.pages").items()}


def each(count: int) -> dict[str, int]:
    return dict.fromkeys(PAGES, count)


def checkpoints(pipeline: Pipeline, place: Place) -> Path:
    return Path(place.checkpoint(pipeline.name, ""))


def contents(directory: Path) -> dict[Path, bytes]:
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def without_note(checkpoint: Path) -> None:
    """As the version before wrote it, which had no note."""
    for file in checkpoint.glob("*ottla.json*"):
        file.unlink()


def put_aside(pipeline: Pipeline, place: Place) -> list[Path]:
    return list(checkpoints(pipeline, place).parent.glob(f"{pipeline.name}.before-*"))


@pytest.mark.parametrize(
    ("query", "note", "told"),
    [
        ("pages", None, "pages has no layout"),
        # A query that only the version before had.
        ("rejects", None, "rejects has no layout"),
        ("pages", {"layout": LAYOUT - 1, "lake": {}}, f"pages has layout {LAYOUT - 1}"),
        (
            "pages",
            {"layout": LAYOUT + 1, "lake": {}},
            rf"pages has layout {LAYOUT + 1}, this version has layout {LAYOUT}",
        ),
    ],
)
def test_checkpoints_of_another_version_are_refused_and_left_as_they_are(
    drive: Drive, pipeline_spark: Any, counting: Pipeline, query: str, note: dict[str, Any] | None, told: str
) -> None:
    place = drive.place()
    checkpoint = checkpoints(counting, place) / query
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n')
    if note is not None:
        (checkpoint / "ottla.json").write_text(json.dumps(note))
    before = contents(Path(place.data))
    with pytest.raises(OtherLayout, match=told) as refused:
        job.run_once(pipeline_spark, counting, place)
    assert contents(Path(place.data)) == before
    text = str(refused.value)
    assert str(checkpoint.parent) in text
    assert "--begin published" in text
    assert "--begin anew" in text
    assert "\n" not in text


def test_the_lake_s_checkpoints_of_another_version_are_refused(drive: Drive, pipeline_spark: Any) -> None:
    offsets = checkpoints(INGESTION, drive.place()) / "lake" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n")
    with pytest.raises(OtherLayout, match="lake has no layout"):
        job.run_once(pipeline_spark, INGESTION, drive.place())


def test_anew_counts_all_that_the_topics_have(drive: Drive, pipeline_spark: Any, counting: Pipeline) -> None:
    place = drive.place()
    anew = replace(place, begin="anew")
    send_all(visits(counting, range(30)), place.bootstrap)
    job.run_once(pipeline_spark, counting, anew)
    assert counted(counting, place) == each(10)
    assert put_aside(counting, place) == []
    without_note(checkpoints(counting, place) / "pages")
    before = contents(checkpoints(counting, place))
    send_all(visits(counting, range(30, 90)), place.bootstrap)
    job.run_once(pipeline_spark, counting, anew)
    assert counted(counting, place) == each(30)
    (aside,) = put_aside(counting, place)
    assert contents(aside) == before


def test_published_counts_what_came_after_the_published_offsets(
    drive: Drive, pipeline_spark: Any, counting: Pipeline
) -> None:
    """And the run after that goes on from there, as any does."""
    place = drive.place()
    send_all(visits(counting, range(30)), place.bootstrap)
    job.run_once(pipeline_spark, counting, place)
    assert counted(counting, place) == each(10)
    without_note(checkpoints(counting, place) / "pages")
    before = contents(checkpoints(counting, place))
    send_all(visits(counting, range(30, 90)), place.bootstrap)
    with pytest.raises(OtherLayout):
        job.run_once(pipeline_spark, counting, place)
    job.run_once(pipeline_spark, counting, replace(place, begin="published"))
    assert counted(counting, place) == each(20)
    (aside,) = put_aside(counting, place)
    assert contents(aside) == before
    send_all(visits(counting, range(90, 93)), place.bootstrap)
    job.run_once(pipeline_spark, counting, place)
    assert counted(counting, place) == each(21)
    assert put_aside(counting, place) == [aside]


def test_where_nothing_is_published_the_checkpoints_stay(drive: Drive, pipeline_spark: Any, counting: Pipeline) -> None:
    place = drive.place()
    offsets = checkpoints(counting, place) / "pages" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n")
    before = contents(Path(place.data))
    with pytest.raises(NothingPublished, match=rf"no offsets of {counting.name} were published.*--begin anew"):
        job.run_once(pipeline_spark, counting, replace(place, begin="published"))
    assert contents(Path(place.data)) == before


def test_the_query_that_was_furthest_behind_says_where_to_begin(
    drive: Drive, ottla_target: Target, counting: Pipeline
) -> None:
    """Of each partition; one that no query has read is read from its first record."""
    topic = f"{counting.name}.wide"
    ensure_topics(replace(counting, inputs=(Input(Topic(topic, 3), "page STRING"),)), drive.place().brokers)
    for group, offsets in (
        (f"{counting.name}-pages", {(topic, 0): 5, (topic, 1): 7, (f"{counting.name}.visits", 0): 1}),
        (f"{counting.name}-rejects", {(topic, 0): 3, (topic, 1): 9}),
        (f"other-{counting.name}-pages", {(topic, 0): 1, (topic, 2): 1}),
    ):
        ottla_target.admin.alter_group_offsets(group, offsets).raise_for_errors()
    published = replace(drive.place(), begin="published")
    assert json.loads(starting_offsets(counting, published, [topic])) == {topic: {"0": 3, "1": 7, "2": -2}}
    assert starting_offsets(counting, replace(published, begin="anew"), [topic]) == "earliest"
    assert starting_offsets(counting, drive.place(), [topic]) == "earliest"
