"""JSON values as columns: read at once or one by one, they are the same."""

import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from ottla.spark.source.json_values import JsonFields

INNER = StructType([StructField("id", LongType()), StructField("name", StringType())])
FIELDS = StructType(
    [
        StructField("name", StringType()),
        StructField("count", LongType()),
        StructField("share", DoubleType()),
        StructField("is_new", BooleanType()),
        StructField("inner", INNER),
    ]
)
PLAIN = (
    b'{"name":"a","count":1,"share":0.5,"is_new":true,"inner":{"id":7,"name":"b"}}',
    b'{"name":"c","count":-20}',
    b' { "name" : null , "count" : 3 , "more" : [1, 2] } ',
    b"{}",
    '{"name":"Čáp","count":4}'.encode(),
)
ODD = (
    None,
    b"",
    b" ",
    b"null",
    b"[]",
    b"5",
    b'"x"',
    b"not json",
    b'{"name":"cut o',
    b'{"name":5}',
    b'{"count":1.5}',
    b'{"count":"1"}',
    b'{"count":99999999999999999999}',
    b'{"is_new":"yes","name":"d"}',
    b'{"inner":5,"name":"e"}',
    b'{"inner":{"id":"x","name":"f"}}',
    b'{"name":"a"}{"name":"b"}',
    b'{"name":"},{"}',
    b'{"name":"\xff"}',
    b"\xff\xfe{",
)


def rows(fields: JsonFields, values: list[bytes | None]) -> list[dict[str, Any]]:
    columns = fields.columns(pa.array(values, pa.binary()))
    found: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return found


@pytest.mark.parametrize("odd_share", [0.0, 0.01, 0.3, 1.0])
def test_odd_values_among_others_make_no_difference_to_them(odd_share: float) -> None:
    choices = random.Random(7)
    fields = JsonFields(FIELDS)
    for _ in range(60):
        count = choices.randrange(1, 60)
        mixed = [choices.choice(ODD if choices.random() < odd_share else PLAIN) for _ in range(count)]
        alone = [row for value in mixed for row in rows(fields, [value])]
        assert rows(fields, mixed) == alone


def test_bytes_that_are_no_text_are_a_row_of_nulls() -> None:
    found = rows(JsonFields(FIELDS), [b'{"name":"\xff","count":1}', b'{"name":"a","count":1}'])
    assert [(row["name"], row["count"]) for row in found] == [(None, None), ("a", 1)]


def test_numbers_and_times_that_python_has_no_room_for() -> None:
    fields = JsonFields(
        StructType(
            [
                StructField("share", DoubleType()),
                StructField("text", StringType()),
                StructField("at", TimestampType()),
            ]
        )
    )
    many = b"9" * 400
    found = rows(
        fields,
        [
            b'{"share":%s,"text":"a"}' % many,
            b'{"share":-%s}' % many,
            b'{"at":"0001-01-01T00:00:00+05:00","text":{"b":1.10,"c":[1e3,2]}}',
        ],
    )
    assert [one["share"] for one in found] == [float("inf"), float("-inf"), None]
    assert [one["text"] for one in found] == ["a", None, '{"b":1.1,"c":[1000.0,2]}']
    assert [one["at"] for one in found] == [None, None, None]
