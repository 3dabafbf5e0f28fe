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
        ("-", FilePlace(None, FileFormat.JSON_LINES)),
    ],
)
def test_names(text: str, expected: Place) -> None:
    assert parse_place(text) == expected


def test_no_name() -> None:
    with pytest.raises(WrongUsage, match="names no topic"):
        parse_place("topic:")
