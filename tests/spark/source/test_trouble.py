"""What goes wrong is told in the driver: by name, with what to do next, and without the traces of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.conftest import start_broker
from tests.peers.ports import free_port
from tests.spark.conftest import PROPERTIES, Target
from tests.spark.source.reading import Query, numbered, reader, write

from ottla import Admin, Consumer
from ottla.client.errors import OttlaError
from ottla.spark.source.columns import connector_schema, projection_of
from ottla.spark.source.failures import DataLoss, ReadFailed
from ottla.spark.source.options import SourceOptions, read_options
from ottla.spark.source.planning import OffsetRange, OffsetRanges
from ottla.spark.source.tasks import TaskReader

pytestmark = pytest.mark.timeout(180)


def complaint(read: Any) -> str:
    with pytest.raises(PySparkException) as caught:
        read()
    told = str(caught.value)
    assert "Traceback" not in told
    assert "File " not in told
    return told


def test_the_driver_says_what_is_wrong(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(2)

    def read(**options: object) -> str:
        return complaint(lambda: reader(spark.read, "ottla", ottla_target, **options).load().count())

    assert "option subscribe names the topic 'no-such-topic', which does not exist: create it first" in read(
        subscribe=f"{topic},no-such-topic", **{"fetchOffset.retryIntervalMs": 10}
    )
    assert "exactly one of the options subscribe, assign, subscribePattern" in read()
    offsets = json.dumps({topic: {"0": 3}})
    assert f"option startingOffsets leaves out {topic}-1: name every partition" in read(
        subscribe=topic, startingOffsets=offsets
    )
    told = read(subscribe=topic, startingOffsets=json.dumps({topic: {"0": -2, "1": -2, "2": 5}}))
    assert f"option startingOffsets names {topic}-2, which subscribe={topic} does not read" in told


def test_a_stream_says_what_is_wrong(spark: Any, ottla_target: Target, tmp_path: Path) -> None:
    topic = ottla_target.topic(1)
    query = Query(spark, ottla_target, tmp_path / "checkpoint", subscribe=topic, startingOffsets='{"x":{"0":1}}')
    assert f"option startingOffsets leaves out {topic}-0" in complaint(query.run)
    misspelt = Query(spark, ottla_target, tmp_path / "other", subscribe=topic, maxOffsetPerTrigger=5)
    assert "did you mean 'maxOffsetsPerTrigger'" in complaint(misspelt.run)


def test_a_broker_that_is_not_there(spark: Any) -> None:
    servers = f"127.0.0.1:{free_port()}"
    quick = {"kafka.default.api.timeout.ms": "300", "kafka.request.timeout.ms": "200"}
    frame = spark.read.format("ottla").options(**{"kafka.bootstrap.servers": servers, "subscribe": "t", **quick}).load()
    assert f"no broker answers at kafka.bootstrap.servers={servers}: see that it runs" in complaint(frame.count)


def test_a_broker_that_goes_away_while_a_range_is_read(tmp_path: Path) -> None:
    server = start_broker("ottla", tmp_path, properties=PROPERTIES)
    with Admin(server.bootstrap) as admin:
        admin.create_topics("t").raise_for_errors()
        target = Target("ottla", server, admin)
        write(target, "t", numbered(10))
    options = options_of(target, "t", **{"kafkaConsumer.pollTimeoutMs": "400"})
    server.stop()
    with pytest.raises(ReadFailed, match="no record of t-0 came at offset 0 within 400 ms: see that the brokers of"):
        read(options, OffsetRange("t", 0, 0, 10))


def options_of(target: Target, topic: str, **more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": topic, **more}
    return read_options(given, is_stream=False)


def read(options: SourceOptions, wanted: OffsetRange) -> list[int]:
    """What a task does, without Spark around it."""
    return [offset for _, _, offset in places(options, wanted)]


def places(options: SourceOptions, wanted: OffsetRange | OffsetRanges) -> list[tuple[str, int, int]]:
    """The same: topic, partition and offset of each row."""
    projection = projection_of(connector_schema(has_headers=True), None)
    rows = [row for batch in TaskReader(options, projection).read(wanted) for row in batch.to_pylist()]
    return [(row["topic"], row["partition"], row["offset"]) for row in rows]


def test_a_task_finds_records_deleted_that_were_planned(target: Target) -> None:
    topic = target.topic(1)
    write(target, topic, numbered(30))
    target.admin.delete_records({(topic, 0): 20}).raise_for_errors()
    strict, lenient = options_of(target, topic), options_of(target, topic, failOnDataLoss="false")
    with pytest.raises(DataLoss, match=rf"offsets 5 to 20 of {topic}-0 are not there any more.*failOnDataLoss"):
        read(strict, OffsetRange(topic, 0, 5, 30))
    assert read(lenient, OffsetRange(topic, 0, 5, 30)) == list(range(20, 30))
    assert read(lenient, OffsetRange(topic, 0, 5, 15)) == []
    # Asked for whatever is there, a range may begin later than it was planned to.
    assert read(strict, OffsetRange(topic, 0, 0, 25, is_from_earliest=True)) == list(range(20, 25))
    with pytest.raises(DataLoss, match=rf"offsets 40 to 50 of {topic}-0 are not there: it ends at 30"):
        read(strict, OffsetRange(topic, 0, 40, 50))
    assert read(lenient, OffsetRange(topic, 0, 25, 50)) == list(range(25, 30))


def test_a_range_in_trouble_does_not_harm_the_others_of_its_task(target: Target) -> None:
    first, second = topics = [target.topic(2), target.topic(1)]
    for topic, partition in ((first, 0), (first, 1), (second, 0)):
        write(target, topic, numbered(10), partition=partition)
    wanted = OffsetRanges((OffsetRange(first, 0, 2, 8), OffsetRange(first, 1, 3, 9), OffsetRange(second, 0, 0, 10)))
    strict, lenient = options_of(target, ",".join(topics)), options_of(target, first, failOnDataLoss="false")

    def rows(topic: str, partition: int, start: int, end: int) -> list[tuple[str, int, int]]:
        return [(topic, partition, offset) for offset in range(start, end)]

    whole = [*rows(first, 0, 2, 8), *rows(first, 1, 3, 9), *rows(second, 0, 0, 10)]
    assert sorted(places(strict, wanted)) == whole
    target.admin.delete_records({(first, 1): 6}).raise_for_errors()
    with pytest.raises(DataLoss, match=rf"offsets 3 to 6 of {first}-1 are not there any more"):
        places(strict, wanted)
    assert sorted(places(lenient, wanted)) == [one for one in whole if one not in rows(first, 1, 3, 6)]
    target.admin.delete_topics([second], wait=True).raise_for_errors()
    with pytest.raises(DataLoss):
        places(strict, wanted)
    assert sorted(places(lenient, wanted)) == [*rows(first, 0, 2, 8), *rows(first, 1, 6, 9)]


def test_a_worker_keeps_its_consumer_and_reads_nothing_with_it_meanwhile(ottla_target: Target) -> None:
    """One that failed is not used again; the next range begins anew."""
    topic = ottla_target.topic(2)
    for partition in range(2):
        write(ottla_target, topic, numbered(5), partition=partition)
    options = options_of(ottla_target, topic)
    assert read(options, OffsetRange(topic, 0, 1, 4)) == [1, 2, 3]
    assert read(options, OffsetRange(topic, 1, 0, 5)) == [0, 1, 2, 3, 4]
    with pytest.raises(OttlaError):
        read(options, OffsetRange(topic, 1, 7, 9))
    assert read(options, OffsetRange(topic, 0, 3, 5)) == [3, 4]


def test_a_damaged_batch_is_not_read_over(tmp_path: Path) -> None:
    server = start_broker("ottla", tmp_path, properties=PROPERTIES)
    try:
        with Admin(server.bootstrap) as admin:
            admin.create_topics("t").raise_for_errors()
            target = Target("ottla", server, admin)
            write(target, "t", numbered(10))
            log = next(server.partition_directory("t", 0).glob("*.log"))
            with log.open("r+b") as file:
                file.seek(-3, 2)
                file.write(b"\xff\xff")
            with pytest.raises(ReadFailed, match="t-0 is damaged at offset 0"):
                read(options_of(target, "t"), OffsetRange("t", 0, 0, 10))
        with Consumer(server.bootstrap) as consumer:
            assert consumer.end_offsets([("t", 0)])
    finally:
        server.stop()
