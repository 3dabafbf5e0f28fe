"""Streaming writes in one session: what comes in goes out, over restarts and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.sink.writing import options_of, values

from ottla import Producer

pytestmark = pytest.mark.timeout(180)

_PARTITIONS = 2


def feed(target: Target, topic: str, numbers: range) -> None:
    with Producer(target.bootstrap) as producer:
        for number in numbers:
            producer.send(topic, b"%03d" % number, partition=number % _PARTITIONS)


class Copy:
    """A query from topic to topic that can be run again from its checkpoint."""

    def __init__(self, spark: Any, target: Target, checkpoint: Path, guarantee: str) -> None:
        self._spark = spark
        self._target = target
        self._checkpoint = checkpoint
        self._guarantee = guarantee
        self.source, self.sink = target.topic(_PARTITIONS), target.topic(_PARTITIONS)

    def run(self, tasks: int, value: str = "value") -> None:
        source = options_of(self._target, subscribe=self.source, startingOffsets="earliest", minPartitions=tasks)
        sink = options_of(self._target, topic=self.sink, deliveryGuarantee=self._guarantee)
        rows = self._spark.readStream.format("ottla").options(**source, maxOffsetsPerTrigger="60").load()
        query = (
            rows.selectExpr(f"{value} AS value")
            .writeStream.format("ottla")
            .options(**sink, checkpointLocation=str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)

    def written(self) -> list[bytes]:
        return values(self._target, self.sink, _PARTITIONS)


def test_all_that_comes_in_goes_out(spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    copy = Copy(spark, ottla_target, tmp_path, "at-least-once")
    feed(ottla_target, copy.source, range(100))
    copy.run(tasks=2)
    assert copy.written() == [b"%03d" % number for number in range(100)]


def test_exactly_once_over_a_restart(spark: Any, target: Target, tmp_path: Path) -> None:
    copy = Copy(spark, target, tmp_path, "exactly-once")
    feed(target, copy.source, range(100))
    copy.run(tasks=2)
    feed(target, copy.source, range(100, 160))
    copy.run(tasks=5)
    assert copy.written() == [b"%03d" % number for number in range(160)]


def test_a_batch_that_failed_is_written_once_when_it_is_repeated(spark: Any, target: Target, tmp_path: Path) -> None:
    """Tasks of it had staged their rows; none of them is seen, neither before nor after."""
    copy = Copy(spark, target, tmp_path, "exactly-once")
    feed(target, copy.source, range(50))
    with pytest.raises(Exception, match="poison"):
        copy.run(tasks=4, value="if(cast(value AS string) = '049', raise_error('poison'), value)")
    assert copy.written() == []
    copy.run(tasks=2)
    assert copy.written() == [b"%03d" % number for number in range(50)]
    assert [
        one for one in target.admin.list_transactions(states=["Ongoing"]) if "decider" in one.transactional_id
    ] == []
