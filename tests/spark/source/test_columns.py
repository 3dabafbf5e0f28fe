"""Schemas of the user, filters that are pushed down, and values that are JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNotNull, LessThan, Not, StringContains
from pyspark.sql.types import StructType
from tests.spark.conftest import Target
from tests.spark.source.reading import FIRST_TIME_MS, numbered, reader, rows_of, write

from ottla.client.errors import ConfigError
from ottla.client.types import TopicPartition
from ottla.spark import register
from ottla.spark.datasource import OttlaDataSource
from ottla.spark.source.columns import connector_schema, projection_of
from ottla.spark.source.filters import push
from ottla.spark.source.planning import OffsetRange

pytestmark = pytest.mark.timeout(180)

JSON_VALUES = [
    b'{"name": "ann", "amount": 12.5, "count": 3, "tags": ["a", "b"], "place": {"x": 1, "y": null}, "more": {}}',
    b'{"name": "bo"}',
    None,
    b"",
    b"no json",
    b'{"name": "half',
    b'{"name": 5, "amount": "much", "count": 7, "tags": "none", "place": {"x": "one"}}',
    b'{"name": {"first": "cy"}, "amount": 3, "count": 99999999999}',
    b'{"amount": 1e3, "count": 2.0, "place": [1]}',
    '{"name": "\u00fcber", "day": "2024-02-29", "at": "2024-02-29T12:30:00Z", "is_new": true}'.encode(),
    b'{"name": null, "tags": [], "is_new": "yes", "day": "soon"}',
    b"[1, 2]",
    b"17",
]
FIELDS = (
    "name STRING, amount DOUBLE, count INT, tags ARRAY<STRING>, place STRUCT<x: BIGINT, y: BIGINT>, is_new BOOLEAN, "
    "day DATE, at TIMESTAMP"
)
QUICK_FIELDS = "name STRING, amount DOUBLE, size BIGINT"


def test_a_schema_with_fewer_columns_prunes_the_others(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(2)
    write(ottla_target, topic, numbered(10), partition=1)
    whole = reader(spark.read, "kafka", ottla_target, subscribe=topic, includeHeaders="true").load()
    schema = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, offset BIGINT, value BINARY"
    pruned = reader(spark.read.schema(schema), "ottla", ottla_target, subscribe=topic).load()
    assert pruned.columns == ["headers", "offset", "value"]
    assert sorted(pruned.collect(), key=lambda row: row.offset) == sorted(
        whole.select("headers", "offset", "value").collect(), key=lambda row: row.offset
    )


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("offset INT", "the schema has offset as int: it is bigint"),
        ("value STRING", "the schema has value as string: it is binary"),
        ("price DOUBLE", "a column 'price', which the source has not: there are key, value"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(schema: str, told: str) -> None:
    source = OttlaDataSource({"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"})
    # It is Spark's session that reads the text of a schema.
    wanted = StructType.fromDDL(schema)
    assert isinstance(wanted, StructType)
    with pytest.raises(ConfigError, match=told):
        source.reader(wanted)


@pytest.fixture
def pushing(spark: Any) -> Iterator[None]:
    """Spark pushes filters into Python sources."""
    register(spark, push_filters=True)
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.usefixtures("pushing")
def test_filters_choose_the_same_rows_as_spark_does(spark: Any, target: Target) -> None:
    """Spark does not look again at what is claimed."""
    topic = target.topic(3)
    for partition in range(3):
        write(target, topic, numbered(40), partition=partition)
    written = reader(spark.read, "kafka", target, subscribe=topic).load()
    theirs = spark.createDataFrame(written.collect(), written.schema)
    time = f"timestamp_millis({FIRST_TIME_MS + 20_000})"
    for condition in (
        f"partition = 1 and offset >= 5 and offset < 30 and timestamp > {time} and topic = '{topic}'",
        f"partition in (0, 2) and timestamp <= {time} and value <> cast('value 3' as binary)",
        f"partition <> 1 and offset = 7 and timestamp = timestamp_millis({FIRST_TIME_MS + 7000})",
        "offset > 1000 or partition = 2",
        f"timestamp >= timestamp_millis({FIRST_TIME_MS + 39_500})",
    ):
        ours = reader(spark.read, "ottla", target, subscribe=topic).load()
        assert rows_of(ours.where(condition)) == rows_of(theirs.where(condition)), condition
    claimed = (
        reader(spark.read, "ottla", target, subscribe=topic)
        .load()
        .where(f"offset < 3 and timestamp > {time} and partition = 0")
    )
    assert "Filter (" not in claimed._jdf.queryExecution().executedPlan().toString()


def test_a_frame_is_used_again_with_other_filters_and_sees_what_came(spark: Any, target: Target) -> None:
    """As with Spark's connector, in a session that is left as Spark has it."""
    topic = target.topic(2)
    write(target, topic, numbered(5))
    ours = reader(spark.read, "ottla", target, subscribe=topic).load()
    assert ours.where("partition = 1").count() == 0
    assert ours.count() == 5
    write(target, topic, numbered(3), partition=1)
    target.admin.delete_records({(topic, 0): 2}).raise_for_errors()
    assert ours.count() == reader(spark.read, "kafka", target, subscribe=topic).load().count() == 6


def test_only_what_is_applied_exactly_is_claimed() -> None:
    projection = projection_of(connector_schema(has_headers=False), None)
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    claimed = [EqualTo(("partition",), 1), GreaterThan(("offset",), 4), LessThan(("timestamp",), noon)]
    claimed += [IsNotNull(("offset",)), In(("topic",), ("t", "u")), Not(EqualTo(("partition",), 3))]
    left = [EqualTo(("value",), b"x"), StringContains(("topic",), "t"), IsNotNull(("key",)), In(("offset",), (1, 2))]
    left += [Not(EqualTo(("offset",), 1)), EqualTo(("partition",), None), GreaterThan(("topic",), "t")]
    left += [EqualTo(("offset",), 1.5), LessThan(("timestamp",), datetime(2024, 1, 1))]
    pushed, not_pushed = push([*claimed, *left], projection)
    assert not_pushed == left
    assert pushed.allows(TopicPartition("t", 1))
    assert not pushed.allows(TopicPartition("x", 1))
    assert pushed.narrow([OffsetRange("t", 1, 0, 9), OffsetRange("t", 2, 0, 9)]) == [OffsetRange("t", 1, 5, 9)]
    assert len(pushed.row_filter.conditions) == 1


@pytest.mark.parametrize("fields", [FIELDS, QUICK_FIELDS])
def test_json_values_are_what_from_json_makes_of_them(spark: Any, ottla_target: Target, fields: str) -> None:
    topic = ottla_target.topic(2)
    write(ottla_target, topic, JSON_VALUES)
    write(
        ottla_target, topic, [b'{"name": "quick", "amount": 1.5, "size": 8}', b'{"size": 9, "other": [1]}'], partition=1
    )
    schema = f"{fields}, partition INT, offset BIGINT"
    typed = reader(spark.read.schema(schema), "ottla", ottla_target, subscribe=topic, valueFormat="json").load()
    theirs = reader(spark.read, "kafka", ottla_target, subscribe=topic).load()
    expected = theirs.selectExpr(f"from_json(cast(value as string), '{fields}') as v", "partition", "offset")
    expected = expected.selectExpr("v.*", "partition", "offset")
    assert typed.schema.names == expected.schema.names

    def in_order(frame: Any) -> list[Any]:
        return sorted(frame.collect(), key=lambda row: (row.partition, row.offset))

    for found, wanted in zip(in_order(typed), in_order(expected), strict=True):
        assert found == wanted, JSON_VALUES[found.offset]


def test_fields_of_values_that_are_named_as_columns(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, [json.dumps({"offset": 70, "key": "mine", "partition": "north"}).encode()])
    schema = "offset BIGINT, _offset BIGINT, key STRING, partition STRING, topic STRING"
    frame = reader(spark.read.schema(schema), "ottla", ottla_target, subscribe=topic, valueFormat="json").load()
    assert [tuple(row) for row in frame.collect()] == [(70, 0, "mine", "north", topic)]


def test_json_values_need_a_schema() -> None:
    options = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", "valueFormat": "json"}
    with pytest.raises(ConfigError, match="option valueFormat needs a schema"):
        OttlaDataSource(options).schema()
