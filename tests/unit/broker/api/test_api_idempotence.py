"""InitProducerId, and what a partition remembers of an idempotent producer."""

import pytest
from tests.unit.broker.api.questions import batch, consume, create_topic, fetch, new_producer_id, produce, values
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def numbered(producer_id: int, sequence: int, *contents: bytes, epoch: int = 0) -> bytes:
    return batch(*contents, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(client: WireClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answers = [client.ask(request, InitProducerIdResponse, version) for _ in range(5)]
    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(0, 0)] * 5
    assert len({answer.producer_id for answer in answers}) == 5
    assert min(answer.producer_id for answer in answers) >= 0


@pytest.mark.parametrize(("transactional_id", "producer_id", "epoch"), [("", -1, -1), (None, 7, -1), (None, -1, 3)])
def test_requests_that_contradict_themselves(
    client: WireClient, transactional_id: str | None, producer_id: int, epoch: int
) -> None:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    answer = client.ask(request, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_an_id_that_is_given_with_its_epoch_is_replaced(client: WireClient) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000, producer_id=10**12, producer_epoch=1
    )
    answer = client.ask(request, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != 10**12


def test_a_duplicate_is_answered_as_the_first_time_and_stored_once(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    batches = [numbered(producer, 2 * number, b"a%d" % number, b"b%d" % number) for number in range(5)]
    first = [produce(client, topic, sent) for sent in batches]
    again = [produce(client, topic, sent) for sent in batches]
    assert [answer.base_offset for answer in first] == [0, 2, 4, 6, 8]
    assert [(answer.error_code, answer.base_offset) for answer in again] == [
        (0, answer.base_offset) for answer in first
    ]
    assert fetch(client, topic, 0).high_watermark == 10


def test_only_the_last_five_batches_are_remembered(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    for sequence in range(6):
        produce(client, topic, numbered(producer, sequence, b"value"))
    assert produce(client, topic, numbered(producer, 1, b"value")).error_code == ErrorCode.NONE
    assert produce(client, topic, numbered(producer, 0, b"value")).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert fetch(client, topic, 0).high_watermark == 6


def test_a_gap_in_the_sequence(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    produce(client, topic, numbered(producer, 0, b"one"))
    answer = produce(client, topic, numbered(producer, 2, b"three"))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert produce(client, topic, numbered(producer, 1, b"two")).base_offset == 1


def test_partitions_count_apart(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    producer = new_producer_id(client)
    for partition in (0, 1):
        assert produce(client, topic, numbered(producer, 0, b"one"), partition=partition).error_code == 0


def test_a_producer_that_is_not_known_may_begin_anywhere(client: WireClient, topic: str) -> None:
    """Its earlier batches may have been deleted with their segments."""
    create_topic(client, topic)
    producer = new_producer_id(client)
    assert produce(client, topic, numbered(producer, 41, b"one")).error_code == ErrorCode.NONE
    assert produce(client, topic, numbered(producer, 42, b"two")).error_code == ErrorCode.NONE


def test_an_older_epoch_is_fenced(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    assert produce(client, topic, numbered(producer, 0, b"one", epoch=3)).error_code == ErrorCode.NONE
    old = produce(client, topic, numbered(producer, 1, b"two", epoch=2))
    assert old.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert values(fetch(client, topic, 0)) == [b"one"]


def test_a_newer_epoch_begins_at_zero(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    produce(client, topic, numbered(producer, 0, b"one", epoch=0))
    skipped = produce(client, topic, numbered(producer, 1, b"two", epoch=1))
    assert skipped.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, topic, numbered(producer, 0, b"two", epoch=1)).error_code == ErrorCode.NONE
    assert consume(client, topic, 2) == [b"one", b"two"]


def test_the_sequence_wraps(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    last = 2**31 - 1
    assert produce(client, topic, numbered(producer, last - 1, b"a", b"b", b"c")).error_code == ErrorCode.NONE
    assert produce(client, topic, numbered(producer, 0, b"d")).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, topic, numbered(producer, 1, b"d")).error_code == ErrorCode.NONE


def test_pipelined_batches_and_their_duplicates_keep_their_order(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = new_producer_id(client)
    contents = [b"%d" % number for number in range(50)]
    for sequence, content in enumerate(contents):
        for _ in range(2):
            assert produce(client, topic, numbered(producer, sequence, content)).base_offset == sequence
    assert consume(client, topic, 50) == contents
