"""What is a topic and what is a file."""

from pathlib import Path

import pytest

from ottla.cli.connecting import WrongUsage
from ottla.cli.places import FileFormat, FilePlace, Place, TopicPlace, parse_place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", TopicPlace("orders")),
        ("orders.v1", TopicPlace("orders.v1")),
        ("topic:orders.jsonl", TopicPlace("orders.jsonl")),
        ("orders.jsonl", FilePlace(Path("orders.jsonl"), FileFormat.JSON_LINES)),
        ("a/b", FilePlace(Path("a/b"), FileFormat.JSON_LINES)),
        ("file:orders", FilePlace(Path("orders"), FileFormat.JSON_LINES)),
        ("Orders.PARQUET", FilePlace(Path("Orders.PARQUET"), FileFormat.PARQUET)),
        ("orders.csv", FilePlace(Path("orders.csv"), FileFormat.CSV)),
        ("topic:orders.csv", TopicPlace("orders.csv")),
        ("orders.avro", TopicPlace("orders.avro")),
        ("-", FilePlace(None, FileFormat.JSON_LINES)),
    ],
)
def test_names(text: str, expected: Place) -> None:
    assert parse_place(text) == expected


@pytest.mark.parametrize("text", ["./orders.avro", "file:orders.jsonl.gz", "data/orders.xlsx"])
def test_a_file_of_another_format_is_refused(text: str) -> None:
    with pytest.raises(WrongUsage, match=r"no format of ottla cp; there are \.csv, \.json, "):
        parse_place(text)


def test_no_name() -> None:
    with pytest.raises(WrongUsage, match="names no topic"):
        parse_place("topic:")
