"""Lines of input as records."""

import pytest

from ottla.cli.connecting import WrongUsage
from ottla.cli.json_records import RecordToSend, WrongLine
from ottla.cli.lines import LineFormat, Splitter, numbered, parse_header


def test_pieces_do_not_depend_on_chunks() -> None:
    splitter = Splitter(b"--")
    assert splitter.feed(b"a-") == []
    assert splitter.feed(b"-b--") == [b"a", b"b"]
    assert splitter.feed(b"c") == []
    assert splitter.finish() == [b"c"]
    assert splitter.finish() == []


def test_an_empty_record_between_delimiters_counts_and_the_end_does_not() -> None:
    splitter = Splitter()
    assert splitter.feed(b"a\n\nb\n") == [b"a", b"", b"b"]
    assert splitter.finish() == []


def test_a_piece_without_an_end_is_refused() -> None:
    with pytest.raises(WrongLine, match="no delimiter within 4 bytes"):
        Splitter(b"\n", max_bytes=4).feed(b"abcde")


def test_an_empty_delimiter_is_refused() -> None:
    with pytest.raises(WrongUsage):
        Splitter(b"")


def test_keys_values_and_nulls() -> None:
    plain = LineFormat(key=b"k", headers=(("h", b"1"),), partition=2)
    assert plain.read(b"tea") == RecordToSend(b"tea", b"k", (("h", b"1"),), None, 2)
    keyed = LineFormat(key_separator=b":", null=b"NULL")
    assert keyed.read(b"a:b:c") == RecordToSend(b"b:c", b"a")
    assert keyed.read(b"a:NULL") == RecordToSend(None, b"a")
    assert keyed.read(b"NULL:a") == RecordToSend(b"a", None)


def test_a_line_of_json_wins_over_options() -> None:
    line_format = LineFormat(key=b"k", headers=(("h", b"1"),), partition=2, is_json=True)
    assert line_format.read(b'{"value": "a"}') == RecordToSend(b"a", b"k", (("h", b"1"),), None, 2)
    said = line_format.read(b'{"value": "a", "key": "own", "partition": 0, "headers": [["x", "y"]], "timestamp": 9}')
    assert said == RecordToSend(b"a", b"own", (("x", b"y"), ("h", b"1")), None, 0, 9)
    assert line_format.read(b'{"value": "a", "key": null}').key is None


def test_errors_name_the_line() -> None:
    with pytest.raises(WrongLine, match="line 8: there is no key separator ':' in 'tea'"):
        list(numbered([b"a:b", b"tea"], 7, LineFormat(key_separator=b":")))
    assert list(numbered([b'{"value": 1}', b"  "], 1, LineFormat(is_json=True))) == [RecordToSend(b"1")]


def test_headers() -> None:
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a=") == ("a", b"")
    assert parse_header("a") == ("a", None)
    with pytest.raises(WrongUsage, match="name=value"):
        parse_header("=b")
    with pytest.raises(WrongUsage, match="no text in UTF-8"):
        parse_header("\udcff=x")
