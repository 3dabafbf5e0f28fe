"""What is written as a line is read back byte for byte, and no chunk boundary matters."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.formats import compile_format
from ottla.cli.json_records import from_json, to_json
from ottla.cli.lines import Splitter
from ottla.client.consumer._twin import Record

CONTENT = st.none() | st.binary(max_size=50) | st.text(max_size=20).map(str.encode)
HEADERS = st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=3).map(tuple)


@given(CONTENT, CONTENT, HEADERS, st.integers(0, 2**31 - 1), st.integers(0, 2**62))
def test_a_record_survives_as_json(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...], partition: int, time: int
) -> None:
    record = Record("orders", partition, 5, time, key=key, value=value, headers=headers)
    line = to_json(record)
    assert "\n" not in line
    again = from_json(line)
    assert (again.key, again.value, again.headers) == (key, value, headers)
    assert (again.topic, again.partition, again.timestamp) == ("orders", partition, time)


@given(st.lists(st.binary(max_size=20)), st.binary(min_size=1, max_size=3), st.data())
def test_chunks_of_a_stream_do_not_matter(pieces: list[bytes], delimiter: bytes, data: st.DataObject) -> None:
    stream = delimiter.join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    splitter = Splitter(delimiter)
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    found += splitter.finish()
    whole = stream.split(delimiter)
    assert found == (whole if whole[-1] else whole[:-1])


@given(st.text(st.characters(exclude_characters="%\\", exclude_categories=["Cs"]), max_size=20), st.binary(max_size=20))
def test_text_between_tokens_is_kept(text: str, value: bytes) -> None:
    record: Record[bytes, bytes] = Record("t", 0, 0, value=value)
    assert compile_format(f"{text}%s{text}%%")(record) == text.encode() + value + text.encode() + b"%"
