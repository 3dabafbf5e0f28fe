"""Decoding: what comes out, and that everything else is MalformedMessage."""

import struct
import traceback

import pytest

from ottla.protocol.decoder import compile_decoder
from ottla.protocol.errors import MalformedMessage, UnsupportedVersion
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.messages.share_fetch import ShareFetchRequest

PRODUCE_V9 = bytes.fromhex("00 ffff 00007530 02 02 74 02 00000002 04 616263 00 00 00")
API_VERSIONS_V3 = b"\x02a" + b"\x02b"


def test_records_are_a_view_of_the_frame() -> None:
    frame = bytearray(PRODUCE_V9)
    records = ProduceRequest.decode(frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert bytes(records) == b"abc"


def test_a_message_may_start_anywhere_but_ends_with_the_buffer() -> None:
    assert ProduceRequest.decode(b"header" + PRODUCE_V9, 9, 6) == ProduceRequest.decode(PRODUCE_V9, 9)
    with pytest.raises(MalformedMessage, match="ends at byte 22, but 1 more bytes follow"):
        ProduceRequest.decode(PRODUCE_V9 + b"\0", 9)


def test_fields_of_other_versions_have_their_defaults() -> None:
    request = FetchRequest.decode(FetchRequest(max_wait_ms=1).encode(4), 4)
    assert request == FetchRequest(max_wait_ms=1)
    assert request.rack_id == ""
    assert request.forgotten_topics_data == []


def test_empty_arrays_are_shared_and_cannot_change() -> None:
    request = MetadataRequest.decode(b"\x01\0\0\0", 11)
    assert request.topics == []
    with pytest.raises(TypeError, match="assign a list of your own"):
        request.topics.append(None)  # type: ignore[arg-type]  # this is what is refused
    request.topics = [None]  # type: ignore[list-item]  # anything will do
    assert MetadataRequest.decode(b"\x01\0\0\0", 11).topics == []


def test_null_is_not_empty() -> None:
    assert MetadataRequest.decode(b"\0\0\0\0", 11).topics is None
    assert MetadataRequest.decode(b"\xff\xff\xff\xff", 1).topics is None
    assert MetadataRequest.decode(b"\0\0\0\0", 1).topics == []


def test_structs_that_may_be_null_have_a_byte_that_says_so() -> None:
    head = b"\x01" + b"\0\0\0\x05"
    assert DescribeTopicPartitionsRequest.decode(head + b"\xff\0", 0).cursor is None
    cursor = DescribeTopicPartitionsRequest.decode(head + b"\x01\x02t\0\0\0\x03\0" + b"\0", 0).cursor
    assert cursor == Cursor(topic_name="t", partition_index=3)


def test_small_signed_numbers_in_arrays() -> None:
    request = ShareFetchRequest.decode(_share_fetch(b"\x00\x01\x7f\x80\xff"), 1)
    assert request.topics[0].partitions[0].acknowledgement_batches[0].acknowledge_types == [0, 1, 127, -128, -1]


def _share_fetch(acknowledge_types: bytes) -> bytes:
    batch = bytes(16) + bytes([len(acknowledge_types) + 1]) + acknowledge_types + b"\0"
    topic = bytes(16) + b"\x02" + (bytes(4) + b"\x02" + batch + b"\0") + b"\0"
    return b"\x00\x00" + bytes(24) + b"\x02" + topic + b"\x01" + b"\0"


def test_unknown_tagged_fields_are_skipped() -> None:
    expected = ApiVersionsRequest(client_software_name="a", client_software_version="b")
    for tags in (
        b"\0",
        b"\x01\x00\x03xyz",
        b"\x02\x05\x00\xff\xff\xff\xff\x0f\x01x",
        b"\x80\x00",
        b"\x02\x03\x00\x02\x00",
    ):
        assert ApiVersionsRequest.decode(API_VERSIONS_V3 + tags, 3) == expected


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"\x01\x00\x04xyz", "tagged field 0 needs 4 bytes, 3 are left"),
        (b"\x01\x00", "ApiVersionsRequest v3"),
        (b"\x02\x00\x00", "ApiVersionsRequest v3"),
        (b"\xff\xff\xff\xff\xff\x01", "does not fit into 32 bits"),
        (b"\xff\xff\xff\xff\x1f", "does not fit into 32 bits"),
        (b"", "ApiVersionsRequest v3"),
    ],
)
def test_bad_tagged_fields(tags: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        ApiVersionsRequest.decode(API_VERSIONS_V3 + tags, 3)


def test_of_a_tag_that_comes_twice_the_last_counts() -> None:
    head = bytes(2) + b"\x01" + bytes(4)
    tags = b"\x02\x01\x08" + bytes(7) + b"\x05\x01\x08" + bytes(7) + b"\x09"
    assert ApiVersionsResponse.decode(head + tags, 3).finalized_features_epoch == 9


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"\x01\x01\x09" + bytes(8), "tagged field 1 needs 9 bytes, 8 are left"),
        (b"\x01\x01\x07" + bytes(7), "finalized_features_epoch ends at byte|ApiVersionsResponse v3"),
        (b"\x01\x01\x09" + bytes(9), "finalized_features_epoch ends at byte 18, it announced byte 19"),
    ],
)
def test_bad_tagged_fields_that_are_known(tags: bytes, reason: str) -> None:
    head = bytes(2) + b"\x01" + bytes(4)
    good = ApiVersionsResponse.decode(head + b"\x01\x01\x08" + bytes(8), 3)
    assert good == ApiVersionsResponse(finalized_features_epoch=0)
    with pytest.raises(MalformedMessage, match=reason):
        ApiVersionsResponse.decode(head + tags, 3)


@pytest.mark.parametrize(
    ("cls", "version", "data", "reason"),
    [
        (DeleteTopicsRequest, 4, "00 00000000 00", "topic_names is null"),
        (DeleteTopicsRequest, 3, "ffffffff 00000000", "topic_names is null"),
        (DeleteTopicsRequest, 4, "02 00 00000000 00", "topic_names is null"),
        (DeleteTopicsRequest, 3, "00000001 ffff 00000000", "topic_names is null"),
        (DeleteTopicsRequest, 3, "00000001 0002 ff fe 00000000", "utf-8"),
        (DeleteTopicsRequest, 3, "7fffffff 0000", "announces 2147483647 elements, 2 bytes are left"),
        (DeleteTopicsRequest, 4, "ffffffff0f 01", "announces 4294967294 elements, 1 bytes are left"),
        (DeleteTopicsRequest, 3, "00000001 7fff 78", "topic_names needs 32767 bytes, 1 are left"),
        (DeleteTopicsRequest, 4, "02 818002 " + "78" * 32768 + "00000000 00", "announces 32768 bytes"),
        (ProduceRequest, 3, "ffff 0001 00000000 00000001 0001 74 00000001 00000000 7fffffff 00", "records needs"),
        (MetadataRequest, 0, "", "MetadataRequest v0"),
    ],
    ids=str,
)  # fmt: skip
def test_malformed(cls: type[Message], version: int, data: str, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        cls.decode(bytes.fromhex(data), version)


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(UnsupportedVersion, match="ProduceRequest has versions 3 to 13, not 2"):
        ProduceRequest.decode(b"", 2)


def test_a_traceback_quotes_the_code_that_was_written() -> None:
    with pytest.raises(struct.error) as caught:
        compile_decoder(ProduceRequest, 9, True)(PRODUCE_V9[:3], 0, True)
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "<decode ProduceRequest v9>"' in text
    assert "= unpack_hiB(buffer, position)" in text
