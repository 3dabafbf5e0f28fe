"""Streaming reads: rows, offsets and limits as those of Spark's own connector, also from its checkpoints."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.source.reading import Query, numbered, reader, rows_of, same_rows, write

from ottla.client.admin import NewTopic

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


def test_who_takes_turns_with_others_waits_for_nobody_when_there_is_an_end(
    spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(3))
    options = {"subscribe": topic, "startingOffsets": "earliest", "triggerPhase": "3599s of 1h"}
    query = Query(spark, ottla_target, tmp_path / "checkpoint", **options)
    query.run()
    assert [row[1] for row in query.rows] == numbered(3)


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


def batches_of(stream: Any, checkpoint: Path, see: Any) -> None:
    """Run a query until all that is there was read, and show each of its micro-batches to this function."""
    writer = stream.writeStream.foreachBatch(lambda frame, _: see(frame)).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert not query.isActive


def test_small_ranges_are_read_by_few_tasks(spark: Any, target: Target, tmp_path: Path) -> None:
    topic = target.topic(6)
    for partition in range(6):
        write(target, topic, numbered(10 * partition, 100 * partition), partition=partition)
    seen: dict[str, tuple[int, list[tuple[Any, ...]]]] = {}
    for name, least in (("apart", 0), ("together", 55)):
        options = {"subscribe": topic, "startingOffsets": "earliest", "minRecordsPerPartition": least}
        stream = reader(spark.readStream, "ottla", target, **options).load()

        def see(frame: Any, name: str = name) -> None:
            seen[name] = (frame.rdd.getNumPartitions(), rows_of(frame))

        batches_of(stream, tmp_path / name, see)
    # Partition 0 has no records. 10, 20 and 30 of the next ones are a task, 40 and 50 another.
    assert [tasks for tasks, _ in seen.values()] == [5, 2]
    assert seen["together"][1] == seen["apart"][1]
    assert [row[1] for row in seen["together"][1]] == [
        value for partition in range(6) for value in numbered(10 * partition, 100 * partition)
    ]


def test_a_small_range_that_lost_records_leaves_the_others_of_its_task_whole(
    spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    topic = ottla_target.topic(3)
    for partition in range(3):
        write(ottla_target, topic, numbered(20), partition=partition)
    options = {"startingOffsets": "earliest", "failOnDataLoss": "false", "minRecordsPerPartition": 1000}
    query = Query(spark, ottla_target, tmp_path / "checkpoint", subscribe=topic, **options)
    query.on_batch = lambda: ottla_target.admin.delete_records({(topic, 1): 15}).raise_for_errors()
    query.run()
    expected = [(0, offset) for offset in range(20)] + [(1, offset) for offset in range(15, 20)]
    assert [(row[3], row[4]) for row in query.rows] == [*expected, *((2, offset) for offset in range(20))]


def test_a_stream_that_is_used_in_several_places_of_a_plan_gives_its_rows_in_each(
    spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    """Also those of a topic that was made anew under its name, with as many records, to a query that is new."""
    topic = ottla_target.topic(2)
    options = {"subscribe": topic, "startingOffsets": "earliest", "rereadBytes": 100_000}
    for run in range(2):
        if run == 1:
            ottla_target.admin.delete_topics([topic], wait=True).raise_for_errors()
            ottla_target.admin.create_topics([NewTopic(topic, 2)]).raise_for_errors()
        for partition in range(2):
            write(ottla_target, topic, numbered(10, 100 * run + 50 * partition), partition=partition)
        stream = reader(spark.readStream, "ottla", ottla_target, **options).load()
        # So many that each worker of the session has tasks of each range.
        places = reduce(lambda left, right: left.unionAll(right), [stream] * 4)
        rows: list[bytes] = []
        batches_of(places, tmp_path / f"run-{run}", lambda frame, rows=rows: rows.extend(r[1] for r in frame.collect()))
        expected = [value for partition in range(2) for value in numbered(10, 100 * run + 50 * partition)]
        assert sorted(rows) == sorted(expected * 4)
