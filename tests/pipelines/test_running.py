"""A run from outside: it ends when it is told to, says what ended it, and tells the truth about how far it is."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.driving import START_MS, Drive, renew_topics, send_all, some_events
from tests.spark.conftest import Target

from ottla.pipelines.campaign.events import CLICKS, VIEWS
from ottla.pipelines.campaign.job import COMPARISONS, PIPELINE
from ottla.pipelines.frame import job
from ottla.pipelines.frame.generating import Event, json_event
from ottla.pipelines.frame.order import Order, carry_out, fed
from ottla.pipelines.frame.pipeline import Answer, Pipeline, Query, ToTopic
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.progress import Progress, Reporter, published
from ottla.pipelines.frame.running import FeedFailed, Running, prepare_topics
from ottla.pipelines.frame.telling import PipelineFailed

pytest.importorskip("pyspark.sql", reason="pyspark is not installed")

_HOUR_MS = 3_600_000


def _with_build(build: Any, count: int = 1) -> Pipeline:
    """The pipeline with other queries, each of which has one answer that is built so."""
    answer = Answer(build, ToTopic(COMPARISONS))
    return replace(PIPELINE, queries=tuple(Query(f"comparisons-{n}", (answer,)) for n in range(count)))


def test_what_is_stopped_while_it_works_off_a_backlog_begins_no_other_query(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    begun = threading.Event()

    def build(streams: Any) -> Any:
        begun.set()
        return streams.events(VIEWS).selectExpr("user_id key", "event_id value")

    pipeline = _with_build(build, count=4)
    renew_topics(pipeline, ottla_target.bootstrap)
    send_all(some_events(pipeline, 200), ottla_target.bootstrap)
    running = Running(pipeline_spark, Place(ottla_target.bootstrap, tmp_path), "1 second")
    working = threading.Thread(target=running.once, args=([pipeline],))
    working.start()
    assert begun.wait(60)
    running.stop()
    working.join(60)
    assert not working.is_alive()
    assert len(running.queries) <= 1
    assert not any(query.isActive for query in running.queries)


def test_a_driver_that_was_killed_while_it_noted_its_first_batch_starts_again(
    drive: Drive, pipeline_spark: Any, ottla_target: Target
) -> None:
    """What it leaves behind: a file that has not got its name yet, and its checksum."""
    query = PIPELINE.queries[0]
    pipeline = replace(PIPELINE, queries=(query,))
    for each in pipeline.queries:
        offsets = Path(drive.place().checkpoint(pipeline.name, each.name)) / "offsets"
        offsets.mkdir(parents=True)
        for name in (".0.9b2c5c1e-77e0-4d1e-a0b3-0a4d2f6f3c11.tmp", "..0.9b2c5c1e-77e0-4d1e-a0b3-0a4d2f6f3c11.tmp.crc"):
            (offsets / name).write_bytes(b"v1")
    drive.at_once(pipeline, some_events(pipeline, 200))
    assert (offsets / "0").exists()


def test_a_generator_that_dies_ends_the_run_and_the_last_report_says_that_it_ended(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    has_begun = threading.Event()

    def feed(*_: object) -> Iterator[object]:
        yield "one"
        has_begun.wait(60)
        raise OSError("the database is locked")

    pipeline = replace(PIPELINE, feed=feed)
    renew_topics(pipeline, ottla_target.bootstrap)
    order = Order([pipeline], Place(ottla_target.bootstrap, tmp_path), is_fed=True)
    seen: set[str] = set()

    def told() -> set[str]:
        """What is published of the queries of this run."""
        return {one.state for one in published(order.place.brokers) if one.key in seen}

    def tick(found: list[Progress]) -> None:
        seen.update(one.key for one in found)
        if told() & {"starting", "running"}:
            has_begun.set()

    with (
        pytest.raises(FeedFailed, match=r"the events of campaign are sent no more: OSError: the database is locked"),
        fed(order) as feeder,
    ):
        carry_out(order, feeder, tick, threading.Event())
    assert told() == {"ended"}


def test_what_is_left_out_is_counted(drive: Drive, pipeline_spark: Any, ottla_target: Target) -> None:
    renew_topics(PIPELINE, ottla_target.bootstrap)
    prepare_topics([PIPELINE], drive.place().brokers)
    newest = START_MS + 2 * _HOUR_MS
    malformed = [Event(CLICKS, b"u1", b"not json at all", newest) for _ in range(2)]
    late = [_visit(f"late-{number}", newest - _HOUR_MS, newest) for number in range(3)]
    # They were sent in time, and read hours later. The watermark that the newest event moves is that of the micro-batch
    # after the next: it has not passed the first of these when that is read, and it has passed the two others.
    unread = [[_visit(f"unread-{number}", START_MS, START_MS)] for number in range(3)]
    place = drive.place()
    queries = [
        job.start_query(pipeline_spark, PIPELINE, replace(query, every="0 seconds"), place, "0 seconds")
        for query in PIPELINE.queries
    ]
    for events in ([_visit("new", newest, newest), *malformed, *late], *unread):
        send_all(events, place.bootstrap)
        for query in queries:
            query.processAllAvailable()
    with Reporter(place.brokers) as reporter:
        found = {one.query: one for one in reporter.report(queries)}
    for query in queries:
        query.stop()
    (told,) = found.values()
    assert (told.dropped, told.dead_letters, told.late) == (2, 2, 3)


def _visit(event_id: str, happened_ms: int, sent_ms: int) -> Event:
    fields = {"event_id": event_id, "event_time": happened_ms, "campaign_id": "c", "user_id": "u1"}
    return json_event(VIEWS, "u1", sent_ms, **fields)


def test_a_query_that_cannot_be_built_or_fails_is_told_by_its_name(pipeline_spark: Any, drive: Drive) -> None:
    place = drive.place()
    renew_topics(PIPELINE, place.bootstrap)
    send_all([_visit("one", START_MS, START_MS)], place.bootstrap)
    unknown = _with_build(lambda streams: streams.events().select("nothing"))
    with pytest.raises(PipelineFailed, match=r"^query campaign.comparisons-0 could not be started: .*nothing"):
        Running(pipeline_spark, place, "1 second").start([unknown])
    failing = _with_build(lambda streams: streams.events().selectExpr("string(raise_error('no room')) key", "'' value"))
    with pytest.raises(PipelineFailed, match=r"^query campaign.comparisons-0 failed: .*no room") as failure:
        job.run_once(pipeline_spark, failing, place)
    assert "\n" not in str(failure.value)


def test_spark_that_does_not_start_is_told_with_what_java_said(
    spark_home: Path, ottla_target: Target, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "ottla", "pipeline", "run", "campaign", "--json", "--master", "nonsense"]
    done = subprocess.run(
        [*command, "--bootstrap", ottla_target.bootstrap, "--data", "here"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    told = json.loads(done.stderr)["error"]
    assert "Spark did not start with master nonsense" in told
    assert "Master must either be yarn or start with spark" in told
    assert str(tmp_path / "here" / "spark.log") in told
