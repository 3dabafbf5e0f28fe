"""Ingestion: every record of a topic is in the lake once, whatever fails; the view has the newest, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.driving import START_MS, Drive, renew_topics, send_all, some_events
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import fill, load
from tests.spark.conftest import Target

from ottla.pipelines.frame import job
from ottla.pipelines.ingestion.compaction import LEAST_FILES, compact
from ottla.pipelines.ingestion.events import VISITS
from ottla.pipelines.ingestion.fresh import FreshView
from ottla.pipelines.ingestion.job import ingestion_of, lake_directory
from ottla.pipelines.ingestion.lake import Lake

PIPELINE = ingestion_of(r"^ingestion\.visits$")


class Crash(Exception):
    """What ends a driver at the worst moment."""


@pytest.mark.timeout(240)
def test_a_batch_that_is_repeated_after_a_crash_is_in_the_lake_once(
    drive: Drive, pipeline_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = some_events(PIPELINE, 3000, rate=0.5)
    place = drive.place(most_per_batch=400)
    renew_topics(PIPELINE, place.bootstrap)
    send_all(events, place.bootstrap)
    directory = lake_directory(place)
    Lake(directory).keep_delta()
    published = Lake.publish
    with monkeypatch.context() as patch:

        def publish_and_crash(lake: Lake, *arguments: Any) -> Any:
            state = published(lake, *arguments)
            if state.version == 3:
                raise Crash("after the lake has it, before Spark knows")
            return state

        patch.setattr(Lake, "publish", publish_and_crash)
        with pytest.raises(Exception, match="before Spark knows"):
            job.run_once(pipeline_spark, PIPELINE, place)
    job.run_once(pipeline_spark, PIPELINE, place)
    state = Lake(directory).state()
    assert reference.lake_rows(directory, VISITS) == reference.records_of(place.bootstrap, VISITS)
    by_hour = {(file.date, file.hour) for file in state.files.values()}
    assert len(by_hour) > 1
    assert len(state.files) < LEAST_FILES * len(by_hour)
    paths = [f"{directory}/{path}" for path in state.files]
    rows = pipeline_spark.read.option("basePath", directory).parquet(*paths)
    assert rows.where("topic = 'ingestion.visits'").count() == len(events)
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    assert deltalake.DeltaTable(directory).to_pyarrow_table().num_rows == len(events)


def _has_all(view: FreshView, target: Target, topic: str) -> bool:
    return reference.rows_of(view.records(topic)) == reference.records_of(target.bootstrap, topic)


def test_the_view_has_partitions_that_are_added_later(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 50)
    with FreshView(ottla_target.bootstrap, [topic], lake) as view:
        assert _has_all(view, ottla_target, topic)
        for partitions in (2, 3):
            ottla_target.admin.create_partitions({topic: partitions}).raise_for_errors()
            # In memory the first time, in the lake before the view hears of it the second time.
            fill(ottla_target, topic, 200)
            if partitions == 3:
                load(pipeline_spark, ottla_target, topic, lake)
            assert _has_all(view, ottla_target, topic)
        fill(ottla_target, topic, 100)
        assert _has_all(view, ottla_target, topic)


def test_the_view_has_what_is_left_of_a_topic(ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(1)
    fill(ottla_target, topic, 100)
    everything = reference.records_of(ottla_target.bootstrap, topic)
    with FreshView(ottla_target.bootstrap, [topic], Lake(tmp_path / "lake"), max_poll_records=100) as view:
        ottla_target.admin.delete_records({(topic, 0): 60}).raise_for_errors()
        seen = reference.rows_of(view.records(topic))
    assert {record for record in everything if record[1] >= 60} <= seen.keys() <= everything.keys()


def test_the_view_has_every_record_once_while_the_lake_grows(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(2)
    lake = Lake(tmp_path / "lake")
    fill(ottla_target, topic, 300)
    with FreshView(ottla_target.bootstrap, [topic], lake) as view:
        assert _has_all(view, ottla_target, topic)
        load(pipeline_spark, ottla_target, topic, lake, records_a_task=100)
        assert _has_all(view, ottla_target, topic)
        fill(ottla_target, topic, 200)
        assert _has_all(view, ottla_target, topic)
        compact(lake, least_files=2)
        assert _has_all(view, ottla_target, topic)
        load(pipeline_spark, ottla_target, topic, lake)
        assert _has_all(view, ottla_target, topic)
        since = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=3)
        recent = view.records(topic, since).column("timestamp").to_pylist()
        # The last of four hours, of both.
        assert len(recent) == 300 // 4 + 200 // 4
        assert min(recent) >= since
