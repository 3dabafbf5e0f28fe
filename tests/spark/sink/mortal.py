"""A streaming job from topic to topic, exactly once, that dies where it is told to.

    python -m tests.spark.sink.mortal '{"bootstrap": ..., "source": ..., "sink": ..., "checkpoint": ..., ...}'

The job is `format("ottla")` as it is; what dies is a step of the writer that this module puts in the place of the real
one. The driver is the leader of a process group of its own, with Spark's JVMs in it: its death is theirs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ottla.spark.datasource import OttlaDataSource
from ottla.spark.sink.decisions import Decider, Decision
from ottla.spark.sink.exactly_once import ExactlyOnceStreamWriter
from ottla.spark.sink.options import read_options
from ottla.spark.sink.rows import HandedOver, row_shape
from ottla.spark.sink.settlement import Settlement
from ottla.spark.sink.staging import StagedRows

if TYPE_CHECKING:
    import pyarrow as pa

DRIVER_STEPS = ("before the decision", "after the decision", "between two ends", "after the last end", "at the end")
TASK_STEPS = ("task", "executor")


class Fate:
    """Where to die, once. `directory` is on the disk that all processes of the job share."""

    def __init__(self, options: Any) -> None:
        self._step = options.get("mortal.step", "")
        self._commits = int(options.get("mortal.commits", "0"))
        self._driver_group = int(options.get("mortal.group", "0"))
        self._directory = Path(options.get("mortal.directory", "."))

    def committing(self) -> None:
        """So many commits have to be made first, so that there is something to lose."""
        (self._directory / f"commit-{time.monotonic_ns()}").touch()

    def is_due(self, step: str) -> bool:
        return step == self._step and len(list(self._directory.glob("commit-*"))) >= self._commits

    def kill_driver(self, step: str) -> None:
        if self.is_due(step):
            (self._directory / "died").touch()
            os.killpg(self._driver_group, signal.SIGKILL)
            os._exit(1)

    def kill_task(self) -> None:
        """Itself, or the executor above it; the first task that comes here is the only one."""
        for step in TASK_STEPS:
            if self.is_due(step):
                try:
                    (self._directory / "died").touch(exist_ok=False)
                except FileExistsError:
                    return
                os.kill(os.getpid() if step == "task" else _parent_of(os.getppid()), signal.SIGKILL)


def _parent_of(pid: int) -> int:
    """The JVM above the process that makes Spark's Python processes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


class MortalSettlement(Settlement):
    fate: Fate

    def decide(self, decider: Decider, decision: Decision, rows: HandedOver | None) -> None:
        self.fate.committing()
        self.fate.kill_driver("before the decision")
        super().decide(decider, decision, rows)
        self.fate.kill_driver("after the decision")

    def roll_forward(self, decision: Decision) -> None:
        if self.fate.is_due("between two ends") and len(decision.transactions) > 1:
            self._admin.end_transactions(decision.transactions[:1], commit=True).raise_for_errors()
            self.fate.kill_driver("between two ends")
        super().roll_forward(decision)
        self.fate.kill_driver("after the last end")

    def conclude(self, decider: Decider, decision: Decision) -> None:
        super().conclude(decider, decision)
        self.fate.kill_driver("at the end")


class MortalWriter(ExactlyOnceStreamWriter):
    fate: Fate

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        rows = super().write(iterator)
        if rows.transaction is not None:
            self.fate.kill_task()
        return rows

    def settlement(self, key: str) -> Settlement:
        made = MortalSettlement(self._options, key)
        made.fate = self.fate
        return made


class MortalDataSource(OttlaDataSource):
    def streamWriter(self, schema: StructType, overwrite: bool) -> MortalWriter:  # noqa: N802
        options = read_options(self.options)
        writer = MortalWriter(options, row_shape(schema, options.topic))
        writer.fate = Fate(self.options)
        return writer


def main(job: dict[str, Any]) -> None:
    builder = SparkSession.builder.master(job["master"]).appName("mortal")
    for name, value in job["spark"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(MortalDataSource)
    rows = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", job["bootstrap"])
        .option("subscribe", job["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", job["rows_per_batch"])
        .option("minPartitions", job["tasks"])
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", job["bootstrap"])
        .option("topic", job["sink"])
        .option("deliveryGuarantee", "exactly-once")
        .option("handOverBytes", job["hand_over_bytes"])
        .option("checkpointLocation", job["checkpoint"])
        .options(**{f"mortal.{name}": str(value) for name, value in job["fate"].items()})
        .option("mortal.group", os.getpgid(0))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
