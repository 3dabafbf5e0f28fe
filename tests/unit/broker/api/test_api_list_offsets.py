import itertools

import pytest
from tests.unit.broker.api.questions import NOW_MS, batch, compressed, create_topic, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.records import Codec

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
READ_COMMITTED = 1


def ask(
    client: WireClient,
    topic: str,
    place: int,
    *,
    partition: int = 0,
    version: int = 11,
    leader_epoch: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=place, current_leader_epoch=leader_epoch)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        timeout_ms=10_000,
    )
    ((answer,),) = (found.partitions for found in client.ask(request, ListOffsetsResponse, version).topics)
    return answer


def found(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return answer.offset, answer.timestamp, answer.leader_epoch


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """Offsets 0 to 4 with the times 100, 300, 200, 200, 500 after NOW_MS."""
    create_topic(client, topic)
    for offset, delay in enumerate((100, 300, 200, 200, 500)):
        produce(client, topic, batch(b"%d" % offset, timestamp=NOW_MS + delay))
    return topic


@pytest.mark.parametrize(
    ("version", "isolation_level"), [(1, 0), *itertools.product(range(2, 12), (0, READ_COMMITTED))]
)
def test_both_ends(client: WireClient, filled: str, version: int, isolation_level: int) -> None:
    epoch = 0 if version >= 4 else -1
    for place, offset in ((LATEST, 5), (EARLIEST, 0)):
        answer = ask(client, filled, place, version=version, isolation_level=isolation_level)
        assert found(answer) == (offset, -1, epoch)


@pytest.mark.parametrize(
    ("delay", "expected"),
    [(-1000, (0, 100)), (100, (0, 100)), (101, (1, 300)), (300, (1, 300)), (301, (4, 500)), (500, (4, 500))],
)
@pytest.mark.parametrize("version", [1, 11])
def test_by_time(client: WireClient, filled: str, delay: int, expected: tuple[int, int], version: int) -> None:
    offset, expected_delay = expected
    answer = ask(client, filled, NOW_MS + delay, version=version)
    assert found(answer) == (offset, NOW_MS + expected_delay, 0 if version >= 4 else -1)


def test_after_all_times(client: WireClient, filled: str) -> None:
    assert found(ask(client, filled, NOW_MS + 501)) == (-1, -1, -1)


def test_by_time_inside_of_a_compressed_batch(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, compressed(Codec.ZSTD, b"one", b"two"))
    assert found(ask(client, topic, NOW_MS)) == (0, NOW_MS, 0)


def test_the_largest_time(client: WireClient, filled: str) -> None:
    produce(client, filled, batch(b"5", timestamp=NOW_MS))
    assert found(ask(client, filled, MAX_TIMESTAMP)) == (4, NOW_MS + 500, 0)


def test_the_first_of_equal_largest_times(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    for _ in range(2):
        produce(client, topic, batch(b"a", b"b"))
    assert found(ask(client, topic, MAX_TIMESTAMP)) == (0, NOW_MS, 0)


def test_without_tiered_storage(client: WireClient, filled: str) -> None:
    assert found(ask(client, filled, EARLIEST_LOCAL)) == (0, -1, 0)
    assert found(ask(client, filled, LATEST_TIERED)) == (-1, -1, -1)


def test_of_an_empty_partition(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert ask(client, topic, LATEST).offset == 0
    assert ask(client, topic, EARLIEST).offset == 0
    assert found(ask(client, topic, MAX_TIMESTAMP)) == (-1, -1, -1)
    assert found(ask(client, topic, 0)) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("place", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)]
)
def test_places_that_are_newer_than_the_version(client: WireClient, filled: str, place: int, since: int) -> None:
    answer = ask(client, filled, place, version=since - 1)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


def test_a_place_that_does_not_exist(client: WireClient, filled: str) -> None:
    assert ask(client, filled, -7).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("partition", [1, -1])
def test_a_partition_that_is_not_there(client: WireClient, filled: str, partition: int) -> None:
    answer = ask(client, filled, LATEST, partition=partition)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_leader_epoch_from_the_future(client: WireClient, filled: str) -> None:
    assert ask(client, filled, LATEST, leader_epoch=0).error_code == ErrorCode.NONE
    assert ask(client, filled, LATEST, leader_epoch=9).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_partition_named_twice(client: WireClient, filled: str) -> None:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=place) for place in (EARLIEST, LATEST)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=filled, partitions=wanted)])
    (answered,) = client.ask(request, ListOffsetsResponse).topics
    assert {answer.error_code for answer in answered.partitions} == {ErrorCode.INVALID_REQUEST}
