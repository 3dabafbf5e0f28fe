"""Rows as JSON are what Python's json makes of the same values."""

import datetime
import decimal
import json

import pyarrow as pa
import pytest

from ottla.client.errors import SerializationError
from ottla.client.producer.json_rows import json_rows

ZONE = datetime.UTC


def rows_of(**columns: pa.Array) -> list[object]:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return [json.loads(text) for text in json_rows(batch, list(columns)).to_pylist()]


def test_flat_columns_of_all_kinds() -> None:
    moment = datetime.datetime(2024, 5, 1, 12, 30, 1, 250_000)
    assert rows_of(
        whole=pa.array([1, None], pa.int16()),
        large=pa.array([2**64 - 1, 0], pa.uint64()),
        real=pa.array([1.5, 1e300]),
        small=pa.array([0.5, None], pa.float32()),
        yes=pa.array([True, False]),
        nothing=pa.nulls(2),
        text=pa.array(["a", None]),
        bytes=pa.array([b"b", "ü".encode()]),
        word=pa.array(["x", "y"]).dictionary_encode(),
        exact=pa.array([decimal.Decimal("1.50"), None]),
        local=pa.array([moment, None], pa.timestamp("ms")),
        zoned=pa.array([moment, None], pa.timestamp("us", "UTC")),
        day=pa.array([moment.date(), None]),
        time=pa.array([moment.time(), None], pa.time64("us")),
        duration=pa.array([5, None], pa.duration("s")),
    ) == [
        {
            "whole": 1, "large": 2**64 - 1, "real": 1.5, "small": 0.5, "yes": True, "nothing": None, "text": "a",
            "bytes": "b", "word": "x", "exact": 1.5, "local": "2024-05-01T12:30:01.250",
            "zoned": "2024-05-01T12:30:01.250000Z", "day": "2024-05-01", "time": "12:30:01.250000", "duration": 5,
        },
        {
            "whole": None, "large": 0, "real": 1e300, "small": None, "yes": False, "nothing": None, "text": None,
            "bytes": "ü", "word": "y", "exact": None, "local": None, "zoned": None, "day": None, "time": None,
            "duration": None,
        },
    ]  # fmt: skip


def test_every_character_survives() -> None:
    texts = ["".join(map(chr, range(128))), 'say "hi"\\', "line\nfeed\ttab", "\x00\x1f", "ünï€😀", ""]
    assert rows_of(text=pa.array(texts), **{'na"me\n': pa.array(texts)}) == [
        {"text": text, 'na"me\n': text} for text in texts
    ]


def test_numbers_that_json_lacks_become_null() -> None:
    assert rows_of(x=pa.array([float("nan"), float("inf"), float("-inf"), -0.0])) == [
        {"x": None}, {"x": None}, {"x": None}, {"x": 0.0},
    ]  # fmt: skip


def test_floats_keep_their_value() -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 123456789.123456789, -2.5e-10]
    assert rows_of(x=pa.array(values)) == [{"x": value} for value in values]


def test_a_slice_has_its_own_rows() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["a", None, "c", "d"]), pa.array([1, 2, 3, 4])], names=["x", "n"])
    assert json_rows(batch.slice(1, 2), ["x", "n"]).to_pylist() == ['{"x":null,"n":2}', '{"x":"c","n":3}']


def test_what_is_no_flat_json_is_refused_by_name() -> None:
    with pytest.raises(SerializationError, match="column x: UTF-8 expected"):
        rows_of(x=pa.array([b"\xff"]))
    with pytest.raises(SerializationError, match="column x: list"):
        rows_of(x=pa.array([[1]]))
