"""Offsets of a query in a consumer group: what Kafka's own tool shows of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.spark.conftest import Target
from tests.spark.source.reading import Query, numbered, reader, write

from ottla import Consumer

pytestmark = pytest.mark.timeout(180)

_PATIENCE_SECONDS = 120.0


def lag_of(target: Target, group: str) -> dict[tuple[str, int], tuple[int, int]]:
    """By partition: the offset of the group, and its lag, as Kafka's tool prints them."""
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    libs = require_libs(KAFKA_LIBS, "kafka")
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", tool]
    command += ["--bootstrap-server", target.bootstrap, "--describe", "--group", group]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(group)]
    return {(line[1], int(line[2])): (int(line[3]), int(line[5])) for line in lines}


def committed(target: Target, group: str) -> dict[tuple[str, int], int]:
    found = target.admin.list_group_offsets(group)[group]
    return {(topic, number): one.offset for (topic, number), one in found.items() if one is not None}


def wait_for(condition: Callable[[], bool], what: str) -> None:
    gives_up_at = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < gives_up_at, what
        time.sleep(0.05)


def wait_for_listeners(spark: Any) -> None:
    """Until they were told all that has happened."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def test_lag_is_seen_while_a_query_runs_and_is_zero_when_it_has_read_all(
    spark: Any, target: Target, tmp_path: Path
) -> None:
    topic = target.topic(2)
    group = f"lag-of-{topic}"
    for partition in range(2):
        write(target, topic, numbered(50 + partition), partition=partition)
    seen: list[dict[tuple[str, int], int]] = []
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40, "offsetsGroup": group}
    query = Query(spark, target, tmp_path / "checkpoint", **options)
    query.on_batch = lambda: seen.append(committed(target, group))
    query.run()
    # Each batch finds what the ones before it have done.
    assert seen[0] == {(topic, 0): 0, (topic, 1): 0}
    done = [sum(offsets.values()) for offsets in seen]
    assert done == [sum(query.sizes[:number]) for number in range(len(done))]
    assert lag_of(target, group) == {(topic, 0): (50, 0), (topic, 1): (51, 0)}
    # A query that is stopped: nobody asks its source for what follows its last batch.
    write(target, topic, numbered(5))
    stopped = query.start(trigger={"processingTime": "1 hour"})
    wait_for(lambda: any(one.numInputRows == 5 for one in stopped.recentProgress), "the batch was not done")
    assert committed(target, group)[topic, 0] == 50
    write(target, topic, numbered(3))
    stopped.stop()
    wait_for_listeners(spark)
    assert lag_of(target, group) == {(topic, 0): (55, 3), (topic, 1): (51, 0)}


def test_only_batches_that_are_done_are_published_when_a_query_fails(
    spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    """Two sources in one query, of which one is read twice: each has a group and offsets of its own."""
    target = ottla_target
    topics = [target.topic(1), target.topic(1)]
    for topic in topics:
        write(target, topic, numbered(5))
    streams = [
        reader(
            spark.readStream, "ottla", target, subscribe=topic, startingOffsets="earliest", kafka_group_id=f"of-{topic}"
        ).load()
        for topic in topics
    ]
    rows = streams[0].union(streams[1]).union(streams[0])
    batches = []

    def take(frame: Any, number: int) -> None:
        batches.append(frame.count())
        if number:
            raise RuntimeError("enough")

    query = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).start()
    wait_for(lambda: bool(query.recentProgress), "the first batch was not done")
    for count, topic in enumerate(topics, 1):
        write(target, topic, numbered(count))
    with pytest.raises(Exception, match="enough"):
        query.awaitTermination(60)
    assert batches[0] == 15
    wait_for_listeners(spark)
    assert [committed(target, f"of-{topic}") for topic in topics] == [{(topic, 0): 5} for topic in topics]


def test_a_group_of_consumers_is_not_written_over(spark: Any, target: Target, tmp_path: Path) -> None:
    """A job that carries a group id from elsewhere goes on without lag; one that asks for it is told."""
    topic = target.topic(1)
    group = f"members-of-{topic}"
    write(target, topic, numbered(5))
    with Consumer(target.bootstrap, group_id=group, auto_offset_reset="earliest") as member:
        member.subscribe([topic])
        assert member.poll(30)
        carried = Query(spark, target, tmp_path / "carried", subscribe=topic, startingOffsets="earliest")
        carried.run(kafka_group_id=group)
        assert len(carried.rows) == 5
        asking = Query(spark, target, tmp_path / "asking", subscribe=topic, startingOffsets="earliest")
        with pytest.raises(Exception, match=f"option offsetsGroup is '{group}', and that group does not take"):
            asking.run(offsetsGroup=group)
