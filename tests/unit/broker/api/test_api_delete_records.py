"""DeleteRecords: records below an offset are gone at once, for whoever asks."""

import pytest
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    NOW_MS,
    PATIENCE_MS,
    batch,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    values,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

UP_TO_HIGH_WATERMARK = -1
EARLIEST, MAX_TIMESTAMP = -2, -3


def request(*wanted: tuple[str, int, int], timeout_ms: int = PATIENCE_MS) -> DeleteRecordsRequest:
    """Each is a topic, a partition and an offset."""
    topics = [
        DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
        for topic, index, offset in wanted
    ]
    return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)


def delete(
    client: WireClient, topic: str, offset: int, *, partition: int = 0, version: int = 2
) -> DeleteRecordsPartitionResult:
    response = client.ask(request((topic, partition, offset)), DeleteRecordsResponse, version)
    ((result,),) = (found.partitions for found in response.topics)
    assert result.partition_index == partition
    return result


def outcome(result: DeleteRecordsPartitionResult) -> tuple[ErrorCode, int]:
    return ErrorCode(result.error_code), result.low_watermark


def offset_at(client: WireClient, topic: str, place: int) -> tuple[int, int]:
    """(offset, leader epoch)"""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=place)
    question = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    ((answer,),) = (found.partitions for found in client.ask(question, ListOffsetsResponse, 7).topics)
    assert answer.error_code == ErrorCode.NONE
    return answer.offset, answer.leader_epoch


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """Offsets 0 to 9, two in a batch, each batch one millisecond younger than the one before."""
    create_topic(client, topic)
    for number in range(5):
        produce(client, topic, batch(b"%da" % number, b"%db" % number, timestamp=NOW_MS + number))
    return topic


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_below_the_offset_are_gone(client: WireClient, filled: str, version: int) -> None:
    assert outcome(delete(client, filled, 3, version=version)) == (ErrorCode.NONE, 3)
    assert offset_at(client, filled, EARLIEST) == (3, 0)
    for offset in (0, 2):
        refused = fetch(client, filled, offset)
        assert (refused.error_code, refused.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    answer = fetch(client, filled, 3)
    assert (answer.error_code, answer.log_start_offset, answer.high_watermark) == (ErrorCode.NONE, 3, 10)
    # The batch that holds the offset comes whole; clients skip what is before it.
    assert values(answer)[:2] == [b"1a", b"1b"]


def test_by_time_only_what_is_left_is_found(client: WireClient, filled: str) -> None:
    delete(client, filled, 3)
    assert offset_at(client, filled, 0) == (3, 0)
    assert offset_at(client, filled, NOW_MS + 4) == (8, 0)


def test_the_largest_timestamp_is_that_of_a_record_which_is_gone(client: WireClient, filled: str) -> None:
    """A quirk of Kafka's: the segment is asked, not the start of the log."""
    produce(client, filled, batch(b"late", timestamp=NOW_MS))
    delete(client, filled, 10)
    assert offset_at(client, filled, MAX_TIMESTAMP) == (8, 0)


def test_all_of_them(client: WireClient, filled: str) -> None:
    assert outcome(delete(client, filled, UP_TO_HIGH_WATERMARK)) == (ErrorCode.NONE, 10)
    assert offset_at(client, filled, EARLIEST) == (10, 0)
    answer = fetch(client, filled, 10)
    assert (answer.error_code, answer.log_start_offset, values(answer)) == (ErrorCode.NONE, 10, [])
    appended = produce(client, filled, batch(b"new"))
    assert (appended.base_offset, appended.log_start_offset) == (10, 10)
    assert values(fetch(client, filled, 10)) == [b"new"]


def test_an_empty_partition(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert outcome(delete(client, topic, UP_TO_HIGH_WATERMARK)) == (ErrorCode.NONE, 0)
    assert outcome(delete(client, topic, 0)) == (ErrorCode.NONE, 0)


def test_never_back(client: WireClient, filled: str) -> None:
    delete(client, filled, 5)
    for offset in (5, 4, 0):
        assert outcome(delete(client, filled, offset)) == (ErrorCode.NONE, 5)
    assert offset_at(client, filled, EARLIEST) == (5, 0)


@pytest.mark.parametrize("offset", [11, 2**63 - 1, -2, -(2**63)])
def test_offsets_that_are_none(client: WireClient, filled: str, offset: int) -> None:
    assert outcome(delete(client, filled, offset)) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert offset_at(client, filled, EARLIEST) == (0, 0)


def test_unknown_partitions_do_not_keep_the_others(client: WireClient, filled: str) -> None:
    wanted = request((filled, 0, 2), (filled, 1, 2), ("no-such-topic", 0, 0), ("__share_group_state", 0, 0))
    found = {
        (answered.name, result.partition_index): outcome(result)
        for answered in client.ask(wanted, DeleteRecordsResponse).topics
        for result in answered.partitions
    }
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert found == {
        (filled, 0): (ErrorCode.NONE, 2),
        (filled, 1): unknown,
        ("no-such-topic", 0): unknown,
        ("__share_group_state", 0): unknown,
    }


def test_a_partition_that_is_named_twice(client: WireClient, filled: str) -> None:
    (answered,) = client.ask(request((filled, 0, 4), (filled, 0, 2)), DeleteRecordsResponse).topics
    assert [outcome(result) for result in answered.partitions] == [(ErrorCode.NONE, 2)]


def test_nothing_wanted_nothing_answered(client: WireClient) -> None:
    assert client.ask(request(), DeleteRecordsResponse).topics == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_followers_nothing_is_waited_for(client: WireClient, filled: str, timeout_ms: int) -> None:
    (answered,) = client.ask(request((filled, 0, 4), timeout_ms=timeout_ms), DeleteRecordsResponse).topics
    assert [outcome(result) for result in answered.partitions] == [(ErrorCode.NONE, 4)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", (ErrorCode.POLICY_VIOLATION, -1)),
        ("compact,delete", (ErrorCode.NONE, 1)),
        ("delete", (ErrorCode.NONE, 1)),
        ("", (ErrorCode.NONE, 1)),
    ],
)
def test_what_is_only_compacted_keeps_its_records(
    client: WireClient, topic: str, policy: str, expected: tuple[ErrorCode, int]
) -> None:
    create_topic(client, topic, configs={"cleanup.policy": policy})
    for number in range(3):
        produce(client, topic, batch(b"%d" % number))
    assert outcome(delete(client, topic, 1)) == expected
    assert offset_at(client, topic, EARLIEST)[0] == max(expected[1], 0)


def test_a_long_poll_above_the_new_start_goes_on(client: WireClient, filled: str, api_port: int) -> None:
    poll = fetch_request(filled, 10, max_wait_ms=PATIENCE_MS)
    with WireClient(api_port) as reader:
        reader.send(poll, FETCH_BY_NAME)
        assert outcome(delete(client, filled, UP_TO_HIGH_WATERMARK)) == (ErrorCode.NONE, 10)
        produce(client, filled, batch(b"new"))
        answer = only_partition(reader.receive(poll, FetchResponse, FETCH_BY_NAME))
    assert (answer.error_code, answer.log_start_offset, values(answer)) == (ErrorCode.NONE, 10, [b"new"])


def test_a_long_poll_below_the_new_start_ends_with_an_error(client: WireClient, filled: str, api_port: int) -> None:
    """It waits for more bytes than there are, and what it was waiting with goes away."""
    poll = fetch_request(filled, 2, max_wait_ms=1000, min_bytes=1 << 20)
    with WireClient(api_port) as reader:
        reader.send(poll, FETCH_BY_NAME)
        # The answer to a later request shows that the poll has begun.
        with WireClient(api_port) as other:
            fetch(other, filled, 0)
        delete(client, filled, 6)
        answer = only_partition(reader.receive(poll, FetchResponse, FETCH_BY_NAME))
    assert (answer.error_code, values(answer)) == (ErrorCode.OFFSET_OUT_OF_RANGE, [])


def test_the_epoch_of_what_is_gone(client: WireClient, filled: str) -> None:
    delete(client, filled, 6)
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    question = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=filled, partitions=[wanted])]
    )
    ((answer,),) = (topic.partitions for topic in client.ask(question, OffsetForLeaderEpochResponse).topics)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, 0, 10)
