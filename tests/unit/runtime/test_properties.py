"""The format of `java.util.Properties`; what is expected here is what Java reads."""

import pytest

from ottla.runtime.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=value", {"key": "value"}),
        ("key:value", {"key": "value"}),
        ("key value", {"key": "value"}),
        ("key \t=\t value", {"key": "value"}),
        ("key = = value", {"key": "= value"}),
        ("key==value", {"key": "=value"}),
        ("listeners=PLAINTEXT://localhost:9092", {"listeners": "PLAINTEXT://localhost:9092"}),
        ("key", {"key": ""}),
        ("key=", {"key": ""}),
        ("=value", {"": "value"}),
        ("   indented=value", {"indented": "value"}),
        ("value=trailing blanks go  \t", {"value": "trailing blanks go"}),
        ("", {}),
        ("\n\n  \n", {}),
    ],
)
def test_keys_values_and_separators(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a comment\na=1", {"a": "1"}),
        ("   ! another\na=1", {"a": "1"}),
        ("a=1 # not a comment", {"a": "1 # not a comment"}),
        ("# no continuation \\\na=1", {"a": "1"}),
        ("a=1,\\\n    # part of the value", {"a": "1,# part of the value"}),
    ],
)
def test_comments(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,\\\n   2,\\\n\t3", {"a": "1,2,3"}),
        ("a=1,\\\r\n   2", {"a": "1,2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=ends in a backslash\\\\\nb=2", {"a": "ends in a backslash\\", "b": "2"}),
        ("a=three\\\\\\\nb=2", {"a": "three\\b=2"}),
        ("lon\\\n  ger=1", {"longer": "1"}),
    ],
)
def test_a_backslash_at_the_end_joins_lines(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\:b:c", {"a:b": "c"}),
        ("a\\ b c", {"a b": "c"}),
        ("a\\\\=b", {"a\\": "b"}),
        ("a=\\t\\n\\r\\f", {"a": "\t\n\r\f"}),
        ("a=\\u00e4\\u20AC", {"a": "ä€"}),
        ("a=C:\\\\data", {"a": "C:\\data"}),
        ("a=\\z", {"a": "z"}),
        ("a=kept blank\\ ", {"a": "kept blank "}),
    ],
)
def test_escapes(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_the_last_value_of_a_key_wins() -> None:
    assert parse_properties("a=1\nb=2\na=3") == {"a": "3", "b": "2"}


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_line_ends(line_end: str) -> None:
    assert parse_properties(line_end.join(["a=1", "b=2", ""])) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("character", ["\x0b", "\x1c", "\x85", "\u2028", "\xa0"])
def test_other_line_ends_and_blanks_of_unicode_are_text(character: str) -> None:
    assert parse_properties(f"a=1{character}b=2") == {"a": f"1{character}b=2"}
