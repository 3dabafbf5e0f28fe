"""Offsets of a query in a consumer group: what Kafka's own tool shows of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.spark.conftest import Target
from tests.spark.source.reading import Query, numbered, write

from ottla import Consumer

pytestmark = pytest.mark.timeout(180)


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
    write(target, topic, numbered(5))
    assert lag_of(target, group)[topic, 0] == (50, 5)
    query.run()
    assert committed(target, group) == {(topic, 0): 55, (topic, 1): 51}


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
