"""JSON values as typed columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ottla.client.consumer.json_columns import JsonColumns
from ottla.client.errors import SerializationError


def table(*values: bytes | None) -> Any:
    rows = len(values)
    return pa.table(
        {
            "key": pa.array([b"k%d" % row for row in range(rows)], pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["orders"] * rows,
            "partition": pa.array([3] * rows, pa.int32()),
            "offset": pa.array(range(40, 40 + rows), pa.int64()),
        }
    )


def test_fields_become_columns_with_their_types() -> None:
    made = JsonColumns()(table(b'{"id": 1, "name": "a", "tags": [1]}', b'{"id": 2, "price": 1.5,\n "name": "b"}'))
    assert made.column_names == ["id", "name", "tags", "price", "key", "topic", "partition", "offset"]
    assert made.column("id").type == pa.int64()
    assert made.select(["id", "name", "price", "offset"]).to_pylist() == [
        {"id": 1, "name": "a", "price": None, "offset": 40},
        {"id": 2, "name": "b", "price": 1.5, "offset": 41},
    ]


def test_tombstones_are_rows_of_nulls() -> None:
    made = JsonColumns()(table(b'{"id": 1}', None, b'{"id": 3}'))
    assert made.column("id").to_pylist() == [1, None, 3]


def test_nothing_but_tombstones_has_no_columns_of_its_own() -> None:
    made = JsonColumns()(table(None, None))
    assert made.num_rows == 2
    assert made.column_names == ["key", "topic", "partition", "offset"]


def test_a_schema_decides_which_columns_there_are() -> None:
    schema = pa.schema([("id", pa.int32()), ("missing", pa.string())])
    made = JsonColumns(schema)(table(b'{"id": 1, "other": true}'))
    assert made.column_names[:2] == ["id", "missing"]
    assert made.column("id").type == pa.int32()
    assert JsonColumns(schema)(table()).schema.names[:2] == ["id", "missing"]


def test_names_that_the_record_has_too_are_kept_apart() -> None:
    made = JsonColumns()(table(b'{"key": "inner", "offset": 7}'))
    assert made.column("key").to_pylist() == ["inner"]
    assert made.column("_key").to_pylist() == [b"k0"]
    assert made.column("_offset").to_pylist() == [40]


def test_a_value_that_is_longer_than_a_block_is_read() -> None:
    long = b"x" * 3_000_000
    made = JsonColumns()(table(b'{"text": "' + long + b'"}', b'{"text": "short"}'))
    assert [len(text) for text in made.column("text").to_pylist()] == [3_000_000, 5]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[1]", "no object: list"),
        (b"7", "no object: int"),
        (b'{"id": 1}{"id": 2}', "is no JSON"),
        (b"", "is no JSON"),
    ],
)
def test_the_first_bad_value_is_named(bad: bytes, why: str) -> None:
    with pytest.raises(SerializationError, match=f"the value of orders-3 at offset 41 {why}|offset 41 .*{why}"):
        JsonColumns()(table(b'{"id": 1}', bad, b'{"id": 3}'))


def test_values_of_two_minds_ask_for_a_schema() -> None:
    with pytest.raises(SerializationError, match="give a schema"):
        JsonColumns()(table(b'{"id": 1}', b'{"id": {"nested": 1}}'))
