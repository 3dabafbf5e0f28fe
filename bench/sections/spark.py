"""Spark's own Kafka connector beside Ottla's data source, on the same topics of the same broker.

A step is one Spark session in which both take turns, warm before anything counts (`bench.jobs.spark`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.peers.process import ServerProcess

from bench.job import run_job
from bench.peers import connect, fresh_topic
from bench.plan import Bench, Step
from bench.rows import CONNECTOR, EXACTLY_ONCE, KAFKA, OTTLA, SPARK_SOURCE
from bench.sections.libraries import fill
from bench.wire import RefusedError, end_offset

PARTITIONS = 4
_CODEC = "lz4"
_FLOOR_RECORDS = 60
_BOTH = ({"side": CONNECTOR, "how": "kafka"}, {"side": SPARK_SOURCE, "how": "ottla"})
_STAGED = {"side": EXACTLY_ONCE, "how": "ottla", "options": {"deliveryGuarantee": "exactly-once"}}


@dataclass(frozen=True, slots=True)
class Measurement:
    """`figures` says which of a job's figures go into which row."""

    what: str
    figures: dict[str, str]
    records: int
    broker: str = OTTLA
    partitions: int = PARTITIONS
    record_bytes: int = 100
    sides: tuple[dict[str, Any], ...] = field(default=_BOTH)

    @property
    def is_read(self) -> bool:
        return self.what != "sink"

    @property
    def title(self) -> str:
        return f"spark: {self.what}, {self.records:,} records of {self.record_bytes} B, {self.partitions} partitions"


def measurements(bench: Bench) -> list[Measurement]:
    settings = bench.settings
    records = settings.spark_records
    found = [
        Measurement("batch", {"spark.batch": "rate", "spark.batch.processor": "processor_us"}, records),
        Measurement("batch", {"spark.batch.kafka": "rate"}, records, broker=KAFKA),
        Measurement("sink", {"spark.sink": "rate", "spark.sink.processor": "processor_us"}, records, sides=_BOTH),
        Measurement("sink", {"spark.sink.staged": "rate"}, records, sides=(_BOTH[0], _STAGED)),
        Measurement("floor", {"spark.floor": "trigger_ms"}, _FLOOR_RECORDS, partitions=1),
    ]
    found += [
        Measurement("batch", {f"spark.partitions.{count}": "rate"}, records, partitions=count)
        for count in settings.spark_partitions
    ]
    for broker in (KAFKA, OTTLA):
        for count in settings.spark_drained_partitions:
            drained = {f"spark.drain.{broker}.{count}": "seconds"}
            if broker == OTTLA and count == settings.spark_drained_partitions[-1]:
                drained |= {"spark.drain.trigger": "trigger_seconds", "spark.drain.processor": "processor_us"}
            found.append(Measurement("drain", drained, records, broker=broker, partitions=count))
    for size in settings.spark_record_bytes:
        some = min(records, settings.spark_bytes // size)
        found.append(Measurement("batch", {f"spark.sizes.{size}": "rate"}, some, record_bytes=size))
    return found


def steps(bench: Bench) -> list[Step]:
    return [
        Step(one.title, f"spark, {next(iter(one.figures))}", partial(measure, bench, one))
        for one in measurements(bench)
        if one.broker in bench.peers.names
    ]


def measure(bench: Bench, measurement: Measurement) -> None:
    broker = bench.peers.get(measurement.broker)
    topic = "spark-" + next(iter(measurement.figures)).replace(".", "-")
    with fresh_topic(broker, topic, measurement.partitions):
        records = _filled(broker, topic, measurement) if measurement.is_read else measurement.records
        specification = {
            "bootstrap": broker.bootstrap,
            "topic": topic,
            "what": measurement.what,
            "records": records,
            "record_bytes": measurement.record_bytes,
            "codec": _CODEC,
            "sides": measurement.sides,
            "warm": bench.settings.warm_rounds,
            "rounds": bench.settings.rounds,
        }
        found = run_job("spark", specification)
        if not measurement.is_read:
            _check_sent(bench, broker, topic, measurement)
    for run in found["runs"]:
        for key, figure in measurement.figures.items():
            bench.results.keep(key, run["side"], run)
            bench.results.add(key, run["side"], run[figure])


def _filled(broker: ServerProcess, topic: str, measurement: Measurement) -> int:
    """How many records there are; the same number in each partition."""
    each = measurement.records // measurement.partitions
    for partition in range(measurement.partitions):
        fill(broker.bootstrap, topic, each, "none", partition, measurement.record_bytes)
    return each * measurement.partitions


def _check_sent(bench: Bench, broker: ServerProcess, topic: str, measurement: Measurement) -> None:
    """Transactions leave markers, so the log may be longer than what was sent, and never shorter."""
    rounds = bench.settings.warm_rounds + bench.settings.rounds
    sent = measurement.records * rounds * len(measurement.sides)
    with connect(broker) as connection:
        stored = sum(end_offset(connection, topic, partition) for partition in range(measurement.partitions))
    if stored < sent:
        raise RefusedError(f"{sent} records were sent, the logs have {stored}")
