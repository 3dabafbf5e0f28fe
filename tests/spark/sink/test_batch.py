"""Batch writes: the same records as Spark's connector writes, on both brokers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.sink.writing import stored, values, write

pytestmark = pytest.mark.timeout(180)

_ROWS = 300
_PARTITIONS = 3

_EVERYTHING = (
    "if(id % 7 = 0, null, concat('key ', id % 11)) AS key",
    "if(id % 10 = 0, null, cast(concat('value ', id) AS binary)) AS value",
    "if(id % 3 = 0, null, array(named_struct('key', 'n', 'value', cast(cast(id AS string) AS binary)), "
    "named_struct('key', 'none', 'value', cast(null AS binary)))) AS headers",
    "if(id % 2 = 0, null, cast(id % 3 AS int)) AS partition",
)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_the_same_records_as_the_connector(spark: Any, target: Target, guarantee: str) -> None:
    """Nulls, headers and partitions, in the order of the rows. Where neither key nor partition says where a record
    goes, clients choose as they like: such rows are compared without their place."""
    frame = spark.range(0, _ROWS, 1, 1).selectExpr(*_EVERYTHING)
    ours, theirs = target.topic(_PARTITIONS), target.topic(_PARTITIONS)
    write(frame, "ottla", target, topic=ours, deliveryGuarantee=guarantee)
    write(frame, "kafka", target, topic=theirs, includeHeaders=True)
    found, expected = stored(target, ours, _PARTITIONS), stored(target, theirs, _PARTITIONS)
    assert len(found) == len(expected) == _ROWS

    def contents(records: list[Any]) -> list[Any]:
        return sorted((record[2:] for record in records), key=repr)

    def placed(records: list[Any], partition: int) -> list[Any]:
        return [record[2:] for record in records if record.partition == partition and record.key is not None]

    assert contents(found) == contents(expected)
    for partition in range(_PARTITIONS):
        assert placed(found, partition) == placed(expected, partition)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(spark: Any, ottla_target: Target, codec: str) -> None:
    topic = ottla_target.topic()
    frame = spark.range(0, _ROWS, 1, 1).selectExpr("repeat(cast(id AS string), 20) AS value")
    write(frame, "ottla", ottla_target, topic=topic, kafka_compression_type=codec)
    expected = [str(number).encode() * 20 for number in range(_ROWS)]
    assert [record.value for record in stored(ottla_target, topic)] == expected


def test_rows_choose_their_topics_unless_the_option_does(spark: Any, target: Target) -> None:
    first, second, all_of_them = target.topic(), target.topic(), target.topic()
    frame = spark.range(0, 100, 1, 2).selectExpr(
        f"if(id % 4 = 0, '{first}', '{second}') AS topic", "cast(id AS string) AS value", "id AS other"
    )
    write(frame, "ottla", target)
    write(frame, "ottla", target, topic=all_of_them)
    numbers = [str(number).encode() for number in range(100)]
    assert values(target, first) == sorted(numbers[::4])
    assert values(target, second) == sorted(set(numbers) - set(numbers[::4]))
    assert values(target, all_of_them) == sorted(numbers)


def test_a_frame_without_rows_writes_nothing(spark: Any, target: Target) -> None:
    topic = target.topic()
    nothing = spark.createDataFrame([], "key STRING, value BINARY")
    write(nothing, "ottla", target, topic=topic)
    write(nothing, "ottla", target, topic=topic, deliveryGuarantee="exactly-once")
    assert stored(target, topic) == []


def test_exactly_once_is_all_or_nothing(spark: Any, target: Target) -> None:
    """One task of four fails for good, after the others have written."""
    topic = target.topic()
    frame = spark.range(0, 400, 1, 4).selectExpr(
        "if(id = 399, raise_error('no more of this'), cast(id AS string)) AS value"
    )
    with pytest.raises(Exception, match="no more of this"):
        write(frame, "ottla", target, topic=topic, deliveryGuarantee="exactly-once")
    assert values(target, topic) == []
    good = spark.range(0, 400, 1, 4).selectExpr("cast(id AS string) AS value")
    write(good, "ottla", target, topic=topic, deliveryGuarantee="exactly-once")
    assert values(target, topic) == sorted(str(number).encode() for number in range(400))
    left_open = target.admin.list_transactions(states=["Ongoing"])
    assert [one for one in left_open if "-write-" in one.transactional_id] == []
