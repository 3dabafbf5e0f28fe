"""Where a lake can be, and of which topics: what cannot work is said, with what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.driving import start
from tests.pipelines.ingestion import reference
from tests.pipelines.ingestion.filling import brokers, fill, load, records
from tests.spark.conftest import Target
from tests.unit.cli.command_line import CommandLine

from ottla.client.admin import NewTopic
from ottla.pipelines.frame.place import Place
from ottla.pipelines.ingestion.fresh import FreshView
from ottla.pipelines.ingestion.job import PIPELINE
from ottla.pipelines.ingestion.lake import Lake, NotADirectory, NotShared
from ottla.pipelines.ingestion.state import Commit, LakeFile, LakeState, TopicReplaced
from ottla.pipelines.ingestion.streaming import ingest


def test_a_relative_path_is_the_drivers_for_all_workers(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ottla_target.topic(1)
    fill(ottla_target, topic, 100)
    # Workers of Spark stay where they were started.
    monkeypatch.chdir(tmp_path)
    CommandLine(ottla_target.bootstrap)("lake", "load", "lake", topic)
    ingest(records(pipeline_spark, ottla_target, topic), Lake("other"), brokers(ottla_target))
    for name in ("lake", "other"):
        assert reference.lake_rows(tmp_path / name, topic) == reference.records_of(ottla_target.bootstrap, topic)


def test_an_address_is_refused(ottla_target: Target, pipeline_spark: Any) -> None:
    for command in (["load", "hdfs://name/lake", "orders"], ["show", "s3a://bucket/lake"]):
        ended = CommandLine(ottla_target.bootstrap)("lake", *command, code=2)
        assert f"{command[1]} is an address, and a lake is a directory" in ended.err
    with pytest.raises(NotADirectory, match="that the driver, all workers and all readers share"):
        start(pipeline_spark, PIPELINE, Place(ottla_target.bootstrap, "hdfs://name/data"))


def test_workers_that_write_elsewhere_are_noticed(pipeline_spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(1)
    fill(ottla_target, topic, 100)

    class Elsewhere(Lake):
        """As another machine sees a path that is not shared."""

        def state(self) -> LakeState:
            return Lake(tmp_path / "here").state()

    with pytest.raises(NotShared, match="that the driver and all workers share"):
        load(pipeline_spark, ottla_target, topic, Elsewhere(tmp_path / "lake"))
    missing = LakeFile("topic=t/date=2026-01-01/hour=00/0-0.parquet", "t", "2026-01-01", "00", 1, 1)
    with pytest.raises(NotShared, match=r"hour=00/0-0\.parquet"):
        Lake(tmp_path / "here").publish(Commit((missing,)))


def test_another_topic_of_the_same_name_needs_another_lake(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    fill(ottla_target, topic, 200)
    lake = Lake(tmp_path / "lake")
    load(pipeline_spark, ottla_target, topic, lake)
    before = lake.state()
    ottla_target.admin.delete_topics([topic], wait=True).raise_for_errors()
    ottla_target.admin.create_topics([NewTopic(topic, 1)]).raise_for_errors()
    fill(ottla_target, topic, 100)
    ended = CommandLine(ottla_target.bootstrap)("lake", "load", str(lake.directory), topic, code=2)
    assert "Take another directory" in ended.err
    with pytest.raises(TopicReplaced, match="deleted and made again"):
        ingest(records(pipeline_spark, ottla_target, topic), lake, brokers(ottla_target))
    with pytest.raises(TopicReplaced):
        FreshView(ottla_target.bootstrap, [topic], lake)
    assert lake.state() == before
    other = Lake(tmp_path / "other")
    ingest(records(pipeline_spark, ottla_target, topic), other, brokers(ottla_target))
    assert reference.lake_rows(other.directory, topic) == reference.records_of(ottla_target.bootstrap, topic)
