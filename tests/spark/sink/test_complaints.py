"""Whatever is wrong with a write is said in the driver, in one sentence that names the option, column or topic."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.peers.ports import free_port
from tests.spark.conftest import Target
from tests.spark.sink.writing import options_of, stored, write

from ottla.client.errors import OttlaError
from ottla.spark.datasource import OttlaDataSource

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.range(0, 10, 1, 1).selectExpr("cast(id AS string) AS key", "cast(id AS string) AS value", "id")


@pytest.mark.parametrize(
    ("columns", "options", "complaint"),
    [
        (["cast(id AS string) AS value"], {}, r"which topic the rows go to: set the option topic"),
        (["id AS topic", "key AS value"], {}, r"column topic is bigint, but must be string"),
        (["key"], {"topic": "t"}, r"no column value among key"),
        (["id AS value"], {"topic": "t"}, r"column value is bigint, but must be string or binary"),
        (["id AS key", "value"], {"topic": "t"}, r"column key is bigint, but must be string or binary"),
        (["value", "id AS partition"], {"topic": "t"}, r"column partition is bigint, but must be int"),
        (["value", "map('a', 'b') AS headers"], {"topic": "t"}, r"column headers is map<string,string>, but must be"),
        (["value"], {"topic": " "}, r"option topic is empty"),
        (["value"], {"topic": "t", "kafka.acks": "2"}, r"option kafka\.acks cannot be '2'"),
        (["value"], {"topic": "t", "kafka.key.serializer": "x"}, r"option kafka\.key\.serializer is not supported"),
        (["value"], {"topic": "t", "deliveryGuarantee": "twice"}, r"option deliveryGuarantee cannot be 'twice'"),
        (
            ["value"],
            {"topic": "t", "deliveryGuarantee": "exactly-once", "kafka.acks": "1"},
            r"deliveryGuarantee=exactly-once does not go with the kafka\.\* options: .*acks",
        ),
    ],
)
def test_wrong_options_and_columns(frame: Any, columns: list[str], options: dict[str, str], complaint: str) -> None:
    """Where Spark asks for a writer, in the driver; no broker is asked for any of this."""
    source = OttlaDataSource({"kafka.bootstrap.servers": "localhost:1", **options})
    schema = frame.selectExpr(*columns).schema
    with pytest.raises(OttlaError, match=complaint):
        source.writer(schema, overwrite=False)
    with pytest.raises(OttlaError, match=complaint):
        source.streamWriter(schema, overwrite=False)


def test_spark_tells_it_without_a_trace(frame: Any, ottla_target: Target) -> None:
    with pytest.raises(PySparkException, match=r"column value is bigint, but must be string or binary") as failure:
        write(frame.selectExpr("id AS value"), "ottla", ottla_target, topic="t")
    assert "Traceback" not in str(failure.value)


def test_a_topic_that_does_not_exist(frame: Any, target: Target) -> None:
    with pytest.raises(Exception, match=r"topic no-such-topic of option topic does not exist") as failure:
        write(frame, "ottla", target, topic="no-such-topic")
    assert "Traceback" not in str(failure.value)
    stray = frame.selectExpr("'no-such-topic' AS topic", "value")
    with pytest.raises(Exception, match=r"topic no-such-topic does not exist: create it"):
        write(stray, "ottla", target, kafka_max_block_ms=5000)


def test_no_broker_there(frame: Any) -> None:
    options = {"kafka.bootstrap.servers": f"localhost:{free_port()}", "kafka.default.api.timeout.ms": "1500"}
    with pytest.raises(Exception, match=r"no broker of option kafka\.bootstrap\.servers=localhost:\d+ answers"):
        frame.write.format("ottla").mode("append").options(**options).option("topic", "t").save()


def test_overwriting_a_topic_is_refused(frame: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic()
    with pytest.raises(Exception, match=r"overwrite is not allowed: a topic is only ever appended to"):
        frame.write.format("ottla").mode("overwrite").options(**options_of(ottla_target, topic=topic)).save()


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_rows_that_cannot_be_written(spark: Any, ottla_target: Target, guarantee: str) -> None:
    target = ottla_target
    topic = target.topic()
    wrong = {
        r"column topic is null in some rows": [f"if(id = 5, null, '{topic}') AS topic", "'x' AS value"],
        r"partition 7: the topic has 0 to 0": [f"'{topic}' AS topic", "'x' AS value", "cast(7 AS int) AS partition"],
        r"max\.request\.size": [f"'{topic}' AS topic", "repeat('x', 1100000) AS value"],
    }
    for complaint, columns in wrong.items():
        frame = spark.range(0, 8, 1, 1).selectExpr(*columns)
        with pytest.raises(Exception, match=complaint):
            write(frame, "ottla", target, deliveryGuarantee=guarantee)
    if guarantee == "exactly-once":
        assert stored(target, topic) == []
