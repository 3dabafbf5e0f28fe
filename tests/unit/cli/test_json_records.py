"""Records as JSON lines: what a program reads, and what it may write."""

import json

import pytest

from ottla.cli.json_records import RecordToSend, WrongLine, from_json, to_json
from ottla.client.consumer._twin import Record


def test_a_line_has_everything() -> None:
    record = Record("orders", 0, 7, 1767225600000, key=b"42", value="čaj".encode(), headers=(("source", b"shop"),))
    assert to_json(record) == (
        '{"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1767225600000, "key": "42", "value": "čaj", '
        '"headers": [["source", "shop"]]}'
    )


def test_bytes_that_are_no_text_and_nulls() -> None:
    line = json.loads(to_json(Record("t", 0, 0, key=b"\xff\x00", headers=(("h", None),))))
    assert line["key"] == {"base64": "/wA="}
    assert line["value"] is None
    assert line["headers"] == [["h", None]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b"17", 17),
        (b"tea", "tea"),
        (b'"tea"', '"tea"'),
        (b"null", "null"),
        (b"NaN", "NaN"),
        (b'{"base64": "AA=="}', '{"base64": "AA=="}'),
        (b"[" * 100_000, "[" * 100_000),
        (b'{"a":1e400}', '{"a":1e400}'),
        (rb'{"a":"\ud800"}', r'{"a":"\ud800"}'),
    ],
)
def test_values_as_json_are_read_back_as_what_they_were(value: bytes, expected: object) -> None:
    line = to_json(Record("t", 0, 0, value=value), is_value_json=True)
    assert json.loads(line)["value"] == expected
    again = from_json(line).value
    assert again is not None
    assert again == value or json.loads(again) == json.loads(value)


@pytest.mark.parametrize(
    "number", ["0.1000000000000000055511151231257827", "1.10", "1e5", "-0", "9" * 5000, "12345678901234567890", "2.5"]
)
def test_numbers_keep_their_digits(number: str) -> None:
    content = f'{{"a":[{number},"č"],"b":{{"c":{number}}}}}'
    line = to_json(Record("t", 0, 0, value=content.encode()), is_value_json=True)
    assert f'"value": {{"a": [{number}, "č"], "b": {{"c": {number}}}}}, ' in line
    assert from_json(line).value == content.encode()
    assert from_json(f'{{"value": {number}}}').value == number.encode()


def test_a_number_beyond_all_others_is_written_as_it_is() -> None:
    assert from_json('{"value": {"a": 1e400}}').value == b'{"a":1e400}'


def test_a_null_key_is_a_key() -> None:
    assert from_json('{"value": 1, "key": null}', b"k").key is None
    assert from_json('{"value": 1}', b"k").key == b"k"


def test_a_record_without_a_time() -> None:
    assert from_json(to_json(Record("t", 0, 0, -1, value=b"tea"))) == RecordToSend(b"tea", None, (), "t", 0)


def test_what_a_line_may_leave_out() -> None:
    assert from_json('{"value": "tea"}') == RecordToSend(b"tea")
    assert from_json('{"value": null, "key": "k"}') == RecordToSend(None, b"k")
    assert from_json('{"value": {"b": 1}, "headers": {"x": "y"}, "partition": 3, "timestamp": 5}') == RecordToSend(
        b'{"b":1}', None, (("x", b"y"),), None, 3, 5
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("tea", "this is no JSON"),
        ("[1]", "a record is a JSON object"),
        ('{"key": "k"}', "'value' is missing"),
        ('{"value": 1, "vaule": 2}', "'vaule' is no field"),
        ('{"value": {"base64": "?"}}', "base64 of 'value'"),
        ('{"value": 1, "partition": "0"}', "'partition' is '0': it must be a whole number"),
        ('{"value": 1, "partition": true}', "'partition' is True"),
        ('{"value": 1, "partition": -1}', "'partition' is -1: it must be from 0 to 2147483647"),
        ('{"value": 1, "timestamp": -2}', "'timestamp' is -2: it must be from 0 to 9223372036854775807"),
        ('{"value": 1, "timestamp": 1' + "0" * 24 + "}", "it must be from 0 to 9223372036854775807"),
        ('{"value": 1, "timestamp": 1e3}', "'timestamp' is 1e3: it must be a whole number"),
        ('{"value": NaN}', "this is no JSON: NaN"),
        ('{"value": [-Infinity]}', "this is no JSON: -Infinity"),
        ('{"value": ' + "[" * 200_000, "this is nested too deeply"),
        ('{"value": 1, "topic": 5}', "'topic' is 5: it must be a string"),
        ('{"value": 1, "headers": [["a"]]}', "list of [name, value]"),
        ('{"value": 1, "headers": 7}', "'headers' is an object"),
        (r'{"value": "\ud800"}', "'value' has half of a character"),
        (r'{"value": ["\udc00"]}', "'value' has half of a character"),
        (r'{"value": 1, "headers": {"\ud800": 1}}', "'headers' has half of a character"),
    ],
)
def test_wrong_lines_say_what_is_wrong(line: str, told: str) -> None:
    with pytest.raises(WrongLine) as raised:
        from_json(line)
    assert told in str(raised.value)
