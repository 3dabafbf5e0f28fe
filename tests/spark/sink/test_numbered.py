"""Batch writes with a name and a number: repeated, they write nothing; with them `foreachBatch` is exactly once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.sink.writing import options_of, values, write

from ottla import Producer

pytestmark = pytest.mark.timeout(180)


def test_the_same_number_is_written_once(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(2)
    for number, text in ((1, "one"), (1, "one again"), (2, "two")):
        frame = spark.createDataFrame([(f"{text} {row}",) for row in range(3)], "value STRING")
        options = {"topic": topic, "deliveryGuarantee": "exactly-once", "txnAppId": "numbered", "txnVersion": number}
        write(frame, "ottla", ottla_target, **options)
    expected = sorted(f"{text} {row}".encode() for text in ("one", "two") for row in range(3))
    assert values(ottla_target, topic, 2) == expected


def test_a_number_below_the_last_is_refused(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic()
    frame = spark.createDataFrame([("row",)], "value STRING")
    options = {"topic": topic, "deliveryGuarantee": "exactly-once", "txnAppId": f"refused-{topic}"}
    write(frame, "ottla", ottla_target, **options, txnVersion=5)
    with pytest.raises(Exception, match="comes after batch 5 was decided"):
        write(frame, "ottla", ottla_target, **options, txnVersion=4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"txnAppId": "alone"}, "txnAppId and txnVersion go together"),
        ({"txnAppId": "name", "txnVersion": "last"}, "txnVersion cannot be 'last'"),
    ],
)
def test_half_a_name_is_none(spark: Any, ottla_target: Target, given: dict[str, str], message: str) -> None:
    frame = spark.createDataFrame([("row",)], "value STRING")
    with pytest.raises(Exception, match=message):
        write(frame, "ottla", ottla_target, topic=ottla_target.topic(), deliveryGuarantee="exactly-once", **given)


class Totals:
    """A count by key in update mode, written by `foreachBatch`."""

    def __init__(self, spark: Any, target: Target, checkpoint: Path) -> None:
        self._spark = spark
        self._target = target
        self.checkpoint = checkpoint
        self.source, self.sink = target.topic(2), target.topic(2)

    def run(self) -> None:
        source = options_of(self._target, subscribe=self.source, startingOffsets="earliest", maxOffsetsPerTrigger=20)
        rows = self._spark.readStream.format("ottla").options(**source).load()
        counts = rows.groupBy("key").count().selectExpr("key", "to_json(struct(count)) AS value")
        query = (
            counts.writeStream.outputMode("update")
            .foreachBatch(self._write)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)

    def _write(self, batch: Any, number: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        options = {"deliveryGuarantee": "exactly-once", "txnAppId": query_id, "txnVersion": number}
        write(batch, "ottla", self._target, topic=self.sink, **options)

    def feed(self, count: int) -> None:
        with Producer(self._target.bootstrap) as producer:
            for number in range(count):
                producer.send(self.source, b"", key=b"%d" % (number % 2))

    def written(self) -> list[int]:
        return sorted(json.loads(value)["count"] for value in values(self._target, self.sink, 2))


def test_a_batch_that_spark_repeats_is_not_written_again(spark: Any, target: Target, tmp_path: Path) -> None:
    totals = Totals(spark, target, tmp_path)
    totals.feed(40)
    totals.run()
    first = totals.written()
    assert max(first) == 20
    # Spark forgets that the last batch was done, as if the driver had died between the write and this.
    last = max(int(path.name) for path in (tmp_path / "commits").iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (tmp_path / "commits" / name).unlink(missing_ok=True)
    totals.run()
    assert totals.written() == first
    totals.feed(2)
    totals.run()
    assert totals.written() == [*first, 21, 21]
