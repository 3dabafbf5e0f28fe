"""Frames: length prefixes, headers and the exceptions that history made."""

import pytest

from ottla.protocol.errors import MalformedMessage, UnencodableMessage
from ottla.protocol.framing import (
    MERGE_BELOW_BYTES,
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    merge_small,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse


class Elsewhere:
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def fetched(*records: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=index, records=one) for index, one in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_request_header() -> None:
    frame = bytes.fromhex("0003 0001 00000007 0002 6d65") + b"body"
    assert decode_request_header(frame) == (RequestHeader(3, 1, 7, "me"), 12)
    assert decode_request_header(memoryview(bytearray(frame))) == (RequestHeader(3, 1, 7, "me"), 12)
    assert (
        repr(RequestHeader(3, 1, 7, None))
        == "RequestHeader(api_key=3, api_version=1, correlation_id=7, client_id=None)"
    )


def test_request_header_of_flexible_versions_has_tags() -> None:
    head = bytes.fromhex("0003 0009 00000007 ffff")
    assert decode_request_header(head + b"\0" + b"body") == (RequestHeader(3, 9, 7, None), 11)
    assert decode_request_header(head + b"\x01\x00\x02xy" + b"body") == (RequestHeader(3, 9, 7, None), 15)


def test_the_version_of_a_request_need_not_exist() -> None:
    """A client that asks a broker for its versions may be newer than the broker."""
    header, position = decode_request_header(bytes.fromhex("0012 7fff 00000001 0001 78 00") + b"whatever")
    assert (header.api_key, header.api_version, header.client_id, position) == (18, 0x7FFF, "x", 12)


@pytest.mark.parametrize("api_key", [-1, 4, 52, 999])
def test_an_unknown_api_has_the_plain_header(api_key: int) -> None:
    frame = api_key.to_bytes(2, "big", signed=True) + bytes.fromhex("0000 00000001 0000") + b"\x09"
    assert decode_request_header(frame) == (RequestHeader(api_key, 0, 1, ""), 10)


@pytest.mark.parametrize(
    "frame",
    ["", "0003 0001 00000007", "0003 0001 00000007 0003 6d65", "0003 0009 00000007 ffff"],
)
def test_broken_request_headers(frame: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(bytes.fromhex(frame))


def test_a_client_id_may_be_any_bytes() -> None:
    header, position = decode_request_header(bytes.fromhex("0003 0001 00000007 0002 61ff"))
    assert (header.client_id, position) == ("a\ufffd", 12)


def test_responses_come_back() -> None:
    response = MetadataResponse(cluster_id="c")
    for version in (0, 8, 9, 13):
        parts = encode_response(MetadataRequest, version, 99, response)
        frame = b"".join(parts)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        correlation_id, decoded = decode_response(MetadataRequest, version, frame[4:])
        assert correlation_id == 99
        assert decoded.encode(version) == response.encode(version)


def test_the_header_of_an_api_versions_response_is_never_flexible() -> None:
    response = ApiVersionsResponse(error_code=35)
    (frame,) = encode_response(ApiVersionsRequest, 3, 5, response)
    assert frame[4:] == b"\0\0\0\5" + response.encode(3)
    assert decode_response(ApiVersionsRequest, 3, frame[4:]) == (5, response)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1"])
def test_broken_response_headers(frame: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_response(MetadataRequest, 9, frame)


def test_record_data_that_is_not_in_memory_is_handed_through() -> None:
    small, large, far = b"s", memoryview(bytes(MERGE_BELOW_BYTES)), Elsewhere(10)
    parts = encode_response(FetchRequest, 12, 1, fetched(small, large, far))
    assert [type(part) for part in parts] == [bytes, memoryview, bytes, Elsewhere, bytes]
    assert parts[1] is large
    assert parts[3] is far
    assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4


def test_small_record_data_is_merged() -> None:
    (frame,) = encode_response(FetchRequest, 12, 1, fetched(b"s", bytearray(10), memoryview(bytes(10))))
    assert decode_response(FetchRequest, 12, frame[4:])[1] == fetched(b"s", bytes(10), bytes(10))


def test_merging_starts_with_bytes() -> None:
    large = bytes(MERGE_BELOW_BYTES)
    assert merge_small([large, b"a", b"b"]) == [b"", large, b"ab"]


def test_requests() -> None:
    assert encode_request(MetadataRequest(topics=[]), 1, 7, "me") == bytes.fromhex(
        "00000010 0003 0001 00000007 0002 6d65 00000000"
    )
    assert encode_request(MetadataRequest(topics=None), 9, 7, None) == bytes.fromhex(
        "00000010 0003 0009 00000007 ffff 00 00 01 00 00 00"
    )


def test_a_client_id_that_is_too_long() -> None:
    with pytest.raises(UnencodableMessage, match="request header"):
        encode_request(MetadataRequest(), 1, 7, "x" * 40000)
