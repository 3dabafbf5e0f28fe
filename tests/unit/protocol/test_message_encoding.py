"""Encoding: the bytes, what is passed through, and what is refused."""

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode, UnencodableMessage, UnsupportedVersion
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

NOTHING: Any = None
"""Where the type checker would not let None pass."""


class Elsewhere:
    """Record data that is not in memory: only its length is known here."""

    def __len__(self) -> int:
        return 1000


def produce(records: object) -> ProduceRequest:
    partition = PartitionProduceData(index=2, records=records)
    return ProduceRequest(
        acks=-1, timeout_ms=30000, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )


def fetched(*records: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=index, records=one) for index, one in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_old_versions_have_wide_lengths() -> None:
    expected = "ffff ffff 00007530 00000001 0001 74 00000001 00000002 00000003 616263"
    assert produce(b"abc").encode(3) == bytes.fromhex(expected)


def test_flexible_versions_have_compact_lengths_and_tags() -> None:
    expected = "00 ffff 00007530 02 02 74 02 00000002 04 616263 00 00 00"
    assert produce(b"abc").encode(9) == bytes.fromhex(expected)


def test_long_lengths_are_varints_of_several_bytes() -> None:
    request = DeleteTopicsRequest(topic_names=["x" * 300], timeout_ms=1)
    assert request.encode(4) == b"\x02" + b"\xad\x02" + b"x" * 300 + b"\0\0\0\1" + b"\0"
    assert DeleteTopicsRequest(topic_names=[""] * 200).encode(4).startswith(b"\xc9\x01" + b"\x01" * 200)


def test_records_are_parts_of_their_own() -> None:
    first, second = memoryview(bytes(10)), Elsewhere()
    parts = fetched(first, second).encode_parts(12)
    assert len(parts) == 5
    assert parts[1] is first
    assert parts[3] is second
    assert [type(part) for part in parts[::2]] == [bytes] * 3


def test_the_last_part_is_never_empty() -> None:
    parts = fetched(b"x").encode_parts(4)
    assert parts[-1] == b"x"
    assert all(len(part) for part in parts)


def test_empty_and_null_records_are_no_parts() -> None:
    assert len(fetched(b"", None).encode_parts(12)) == 1


def test_what_is_not_in_memory_cannot_become_bytes() -> None:
    with pytest.raises(UnencodableMessage, match="FetchResponse v12"):
        fetched(Elsewhere()).encode(12)


def test_a_head_comes_first() -> None:
    assert ListGroupsRequest().encode_parts(0, b"head") == [b"head"]
    assert ProduceResponse().encode_parts(9, b"head") == [b"head" + ProduceResponse().encode(9)]


def test_tagged_fields_are_written_when_they_differ_from_the_default() -> None:
    plain = FetchRequest(topics=[FetchTopic(topic="t")])
    tagged = FetchRequest(cluster_id="c", topics=[FetchTopic(topic="t")])
    assert plain.encode(12)[-1:] == b"\0"
    assert tagged.encode(12) == plain.encode(12)[:-1] + b"\x01" + b"\x00\x02" + b"\x02c"


def test_a_field_that_may_be_ignored_is_dropped() -> None:
    assert FetchRequest(rack_id="r", session_id=5).encode(4) == FetchRequest().encode(4)


def test_a_field_that_may_not_be_ignored_is_refused() -> None:
    request = FetchRequest(topics=[], replica_id=3)
    assert request.encode(14) != FetchRequest().encode(14)
    with pytest.raises(UnsupportedVersion, match="replica_id is 3, but version 15 has no such field") as caught:
        request.encode(15)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", [-1, 1, 8])
def test_a_version_that_does_not_exist(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"CreateTopicsRequest has versions 2 to 7, not {version}"):
        CreateTopicsRequest().encode(version)


@pytest.mark.parametrize(
    ("message", "version", "reason"),
    [
        (ProduceRequest(acks=40000), 3, "ProduceRequest v3"),
        (ProduceRequest(acks=NOTHING), 3, "ProduceRequest v3"),
        (ProduceRequest(topic_data=NOTHING), 9, "ProduceRequest v9"),
        (ProduceRequest(topic_data=[TopicProduceData(name=NOTHING)]), 3, "ProduceRequest v3"),
        (ProduceRequest(topic_data=[TopicProduceData(name="x" * 40000)]), 3, "ProduceRequest v3"),
        (ProduceRequest(topic_data=[TopicProduceData(name="x" * 40000)]), 9, "at most 32767 bytes, this one 40000"),
        (ProduceRequest(topic_data=[TopicProduceData(name="\ud800")]), 9, "ProduceRequest v9"),
        (ProduceRequest(topic_data=[TopicProduceData(topic_id=b"short")]), 13, "topic_id must be 16 bytes"),
        (MetadataRequest(topics=None), 0, "topics is None"),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9, "name is None"),
        (CreateTopicsResponse(topics=[NOTHING]), 7, "CreateTopicsResponse v7"),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_a_type_cannot_carry(message: ProduceRequest, version: int, reason: str) -> None:
    with pytest.raises(UnencodableMessage, match=reason):
        message.encode(version)


def test_the_longest_string_there_is() -> None:
    request = DeleteTopicsRequest(topic_names=["x" * 0x7FFF])
    for version in (3, 4):
        assert DeleteTopicsRequest.decode(request.encode(version), version) == request
