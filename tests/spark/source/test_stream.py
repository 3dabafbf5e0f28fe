"""Streaming reads: rows, offsets and limits as those of Spark's own connector, also from its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.source.reading import Query, numbered, reader, same_rows, write

pytestmark = pytest.mark.timeout(240)


def progress_of(query: Any) -> list[dict[str, Any]]:
    """Of batches with rows: what the query said about its source."""
    found = [json.loads(one.json)["sources"][0] for one in query.recentProgress]
    return [one for one in found if one["numInputRows"]]


def test_limits_share_out_batches_as_the_connector_does(spark: Any, target: Target, tmp_path: Path) -> None:
    topic = target.topic(3)
    counts = (200, 40, 1)
    for partition, count in enumerate(counts):
        write(target, topic, numbered(count), partition=partition)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 90}
    ours = Query(spark, target, tmp_path / "ours", **options)
    theirs = Query(spark, target, tmp_path / "theirs", **options)
    our_run, their_run = ours.run(), theirs.run("kafka")
    assert ours.rows == theirs.rows
    assert [row[1] for row in ours.rows] == [value for count in counts for value in numbered(count)]
    assert ours.sizes == theirs.sizes
    for mine, other in zip(progress_of(our_run), progress_of(their_run), strict=True):
        for name in ("startOffset", "endOffset", "latestOffset"):
            assert mine[name] == other[name]


def test_checkpoints_are_those_of_the_connector(spark: Any, target: Target, tmp_path: Path) -> None:
    """A query changes to this source and back, where it left off; partitions that are added are read whole."""
    topic = target.topic(1)
    query = Query(spark, target, tmp_path / "checkpoint", subscribe=topic, startingOffsets="earliest")
    for run, name in enumerate(("kafka", "ottla", "kafka", "ottla")):
        if run == 2:
            target.admin.create_partitions({topic: 2}).raise_for_errors()
            write(target, topic, numbered(7), partition=1)
        write(target, topic, numbered(10, 10 * run))
        query.run(name)
    assert query.rows == same_rows(spark, target, subscribe=topic)
    assert len(query.rows) == 47


def test_a_first_batch_that_failed_is_the_same_when_it_is_run_again(spark: Any, target: Target, tmp_path: Path) -> None:
    """A stream begins with what comes after it. That start is not in Spark's log; the latest offsets, and the
    partitions, are others when it is needed again."""
    topic = target.topic(2)
    write(target, topic, numbered(5))
    checkpoint = tmp_path / "checkpoint"
    query = Query(spark, target, checkpoint, subscribe=topic)
    query.run()
    assert query.sizes == [0]
    # As if the driver had died before the batch was done: Spark has its end in the log, and no commit.
    (checkpoint / "commits" / "0").unlink()
    (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    write(target, topic, numbered(4, 5))
    target.admin.create_partitions({topic: 3}).raise_for_errors()
    write(target, topic, numbered(1, 50), partition=2)
    query.run()
    assert [row[1] for row in query.rows] == numbered(4, 5) + numbered(1, 50)


def test_records_that_were_deleted_between_batches(spark: Any, target: Target, tmp_path: Path) -> None:
    topic = target.topic(1)
    write(target, topic, numbered(20))
    query = Query(spark, target, tmp_path / "checkpoint", subscribe=topic, startingOffsets="earliest")
    query.run(endingTimestamp=1)  # It is for batches; the connector ignores it, too.
    write(target, topic, numbered(20, 20))
    target.admin.delete_records({(topic, 0): 30}).raise_for_errors()
    with pytest.raises(Exception, match=rf"offsets 20 to 30 of {topic}-0 are to be read, and its log begins at 30"):
        query.run()
    query.run(failOnDataLoss="false")
    assert [row[4] for row in query.rows] == [*range(20), *range(30, 40)]


def test_topics_that_were_deleted_between_batches(spark: Any, target: Target, tmp_path: Path) -> None:
    topics = [target.topic(1), target.topic(1)]
    for topic in topics:
        write(target, topic, numbered(5))
    options = {"subscribe": ",".join(topics), "startingOffsets": "earliest"}
    query = Query(spark, target, tmp_path / "checkpoint", **options)
    query.run()
    target.admin.delete_topics([topics[0]], wait=True).raise_for_errors()
    write(target, topics[1], numbered(3, 5))
    with pytest.raises(Exception, match=f"option subscribe names the topic '{topics[0]}', which does not exist"):
        query.run()
    query.run(failOnDataLoss="false")
    assert [row[1] for row in query.rows if row[2] == topics[1]] == numbered(8)


def test_small_batches_wait_for_more(spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    """The first batch does not wait, the next ones do; what is there is read to its end by availableNow."""
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(10))
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 50, "maxTriggerDelay": "1h"}
    query = Query(spark, ottla_target, tmp_path / "checkpoint", **options)
    running = query.start()
    try:
        running.processAllAvailable()
        assert query.sizes == [10]
        write(ottla_target, topic, numbered(45, 10))
        running.processAllAvailable()
        assert query.sizes == [10]
        write(ottla_target, topic, numbered(5, 55))
        running.processAllAvailable()
        assert query.sizes == [10, 50]
    finally:
        running.stop()
    write(ottla_target, topic, numbered(1, 60))
    query.run()
    assert [row[1] for row in query.rows] == numbered(61)


def test_ranges_are_split(spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(2)
    write(ottla_target, topic, numbered(100))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxRecordsPerPartition": 15}
    query = Query(spark, ottla_target, tmp_path / "checkpoint", **options)
    query.run()
    assert [row[1] for row in query.rows] == numbered(100)
    sizes = [len(rows) for rows in reader(spark.read, "ottla", ottla_target, **options).load().rdd.glom().collect()]
    assert max(sizes) <= 15
    assert sum(sizes) == 100
