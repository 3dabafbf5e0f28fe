"""Frames of pandas and polars go as Arrow tables do."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ottla.client.errors import SerializationError, WrongType
from ottla.client.sync.producer import Producer
from ottla.testing import TestBroker

COLUMNS: dict[str, list[Any]] = {"who": ["ann", None, "cy"], "amount": [12.5, 3.0, None], "count": [1, 2, 3]}
JSON = [b'{"amount":12.5,"count":1}', b'{"amount":3,"count":2}', b'{"amount":null,"count":3}']


class _Stream:
    """Any library's table, by Arrow's C data interface alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def producer(ottla: TestBroker) -> Iterator[Producer[Any, Any]]:
    ottla.create_topic("t")
    with Producer[Any, Any](ottla.bootstrap_servers) as producer:
        yield producer


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS, index=["x", "y", "z"]),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).with_columns(pl.col("who").cast(pl.Categorical)),
        _Stream(pa.table(COLUMNS)),
        pa.table(COLUMNS).to_batches()[0],
    ],
    ids=["pandas", "pandas-index", "polars", "polars-categorical", "stream", "record-batch"],
)
def test_a_frame_is_sent_like_a_table(producer: Producer[Any, Any], ottla: TestBroker, frame: Any) -> None:
    assert producer.send_table("t", frame, key="who").result().record_count == 3
    records = sorted(ottla.records("t"), key=lambda record: record.value or b"")
    assert [record.key for record in records] == [b"ann", None, b"cy"]
    assert [record.value for record in records] == JSON


def test_columns_of_polars_are_parts_of_records(producer: Producer[Any, Any], ottla: TestBroker) -> None:
    frame = pl.DataFrame(
        {
            "value": ["a", "b"],
            "headers": [[{"key": "h", "value": b"1"}], []],
            "at": [datetime(2024, 5, 1, 0, 0, 0, 1000, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC)],
        }
    )
    producer.send_table("t", frame, value="value", headers="headers", timestamp="at", partition=0).result()
    first, second = ottla.records("t")
    assert (first.value, dict(first.headers), first.timestamp) == (b"a", {"h": b"1"}, 1_714_521_600_001)
    assert (second.value, second.headers, second.timestamp) == (b"b", (), 1_714_608_000_000)


def test_one_time_for_all_rows_may_be_a_datetime(producer: Producer[Any, Any], ottla: TestBroker) -> None:
    table = pa.table({"value": ["a"]})
    producer.send_table("t", table, value="value", timestamp=datetime(2024, 5, 1, tzinfo=UTC)).result()
    assert [record.timestamp for record in ottla.records("t")] == [1_714_521_600_000]
    with pytest.raises(WrongType, match=r"write int\(seconds \* 1000\)"):
        producer.send_table("t", table, value="value", timestamp=1.7e9)  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match="a timestamp or milliseconds as an integer expected, double came"):
        producer.send_table("t", pa.table({"value": ["a"], "at": [1.7e9]}), value="value", timestamp="at")


def test_what_is_no_table_is_refused(producer: Producer[Any, Any]) -> None:
    with pytest.raises(SerializationError, match=r"a frame of pandas or polars.* builtins\.list came"):
        producer.send_table("t", [{"value": "a"}])
    with pytest.raises(SerializationError, match=r"LazyFrame came: collect\(\) it first"):
        producer.send_table("t", pl.LazyFrame({"value": ["a"]}))
    with pytest.raises(SerializationError, match="the table cannot be sent"):
        producer.send_table("t", pd.DataFrame({"value": ["a", 1, object()]}))
