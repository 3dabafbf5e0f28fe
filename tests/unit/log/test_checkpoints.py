"""The small text files, as Kafka writes them."""

import pytest

from ottla.log.checkpoints import (
    BadCheckpoint,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_properties,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    encode_properties,
)
from ottla.log.files import TopicPartition, deleted_directory_name, offset_of_name, parse_log_directory

TOPIC_ID = bytes(range(16))


def test_offsets() -> None:
    offsets = {TopicPartition("b", 1): 7, TopicPartition("a", 10): 2**62, TopicPartition("a", 2): 0}
    data = encode_offsets(offsets)
    assert data == b"0\n3\na 2 0\na 10 4611686018427387904\nb 1 7\n"
    assert decode_offsets("x", data) == offsets
    assert decode_offsets("x", encode_offsets({})) == {}


def test_epochs() -> None:
    assert encode_epochs([(0, 0), (3, 17)]) == b"0\n2\n0 0\n3 17\n"
    assert decode_epochs("x", b"0\n2\n0 0\n3 17\n") == [(0, 0), (3, 17)]


@pytest.mark.parametrize(
    "data", [b"", b"0\n", b"1\n0\n", b"0\nx\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na b 1\n", b"\xff\xfe"]
)
def test_a_broken_offset_checkpoint_is_named(data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="some-file"):
        decode_offsets("some-file", data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"0\n0\x1f", id="a separator that strip() takes and int() does not"),
        pytest.param("0\n\N{SUPERSCRIPT TWO}\n".encode(), id="a digit that is no number"),
        pytest.param(b"0\n" + b"1" * 5000, id="more digits than Python converts"),
        pytest.param(b"0\n1\na 0 9223372036854775808\n", id="more than 64 bits"),
        pytest.param(b"0\n1\na 0 -2\n", id="below -1"),
    ],
)
def test_numbers_that_no_broker_writes_are_a_broken_checkpoint(data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="some-file"):
        decode_offsets("some-file", data)


@pytest.mark.parametrize("data", [b"0\n1\n-1 5\n", b"0\n1\n1 -1\n"])
def test_epochs_and_their_offsets_are_not_negative(data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="some-file"):
        decode_epochs("some-file", data)


def test_properties_beyond_ascii_are_written_as_they_were_read() -> None:
    found = decode_properties("name=Zürich\n".encode("latin-1"))
    assert decode_properties(encode_properties(found)) == found == {"name": "Zürich"}


@pytest.mark.parametrize("data", [b"0\n1\n1\n", b"0\n1\n1 2 3\n", b"0\n1\na 2\n"])
def test_a_broken_epoch_checkpoint_is_named(data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="some-file"):
        decode_epochs("some-file", data)


def test_partition_metadata() -> None:
    data = encode_partition_metadata(TOPIC_ID)
    assert data == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert decode_partition_metadata("x", data) == TOPIC_ID
    for broken in (b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\ntopic_id: short"):
        with pytest.raises(BadCheckpoint):
            decode_partition_metadata("x", broken)


def test_properties_survive_comments_and_spaces() -> None:
    assert decode_properties(b"#\n#Thu Jan 01\n! x\n\n a = b \nc=d=e\n") == {"a": "b", "c": "d=e"}
    assert decode_properties(encode_properties({"b": "2", "a": "1"})) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-3", TopicPartition("orders", 3)),
        ("my-topic-0", TopicPartition("my-topic", 0)),
        ("a.b_c-12", TopicPartition("a.b_c", 12)),
        ("orders", None),
        ("-1", None),
        ("orders-", None),
        ("orders-01", None),
        ("orders-x", None),
        ("orders-99999999999", None),
        ("orders-1.abc-delete", None),
        ("orders-\u0663", None),
    ],
)
def test_directory_names(name: str, expected: TopicPartition | None) -> None:
    assert parse_log_directory(name) == expected


def test_a_deleted_directory_keeps_within_the_limit_of_names() -> None:
    name = deleted_directory_name(TopicPartition("t" * 249, 12345), "u" * 32)
    assert len(name) == 255
    assert name.endswith(f"-12345.{'u' * 32}-delete")


def test_offsets_in_names() -> None:
    assert offset_of_name("00000000000000000042.log", ".log") == 42
    for name in (
        "42.log",
        "00000000000000000042.index",
        "0000000000000000004x.log",
        "00000000000000000042.log.deleted",
    ):
        assert offset_of_name(name, ".log") is None
