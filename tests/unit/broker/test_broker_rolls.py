"""Segments that fill up under load: nothing is lost, refused or out of order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    PRODUCE_BY_NAME,
    batch,
    compressed,
    consume,
    create_topic,
    fetch,
    new_producer_id,
    produce_request,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse
from ottla.records import Codec

# Every batch gets an index entry of 8 bytes, and a full index rolls its segment.
TINY_SEGMENTS = {"segment.index.bytes": "48", "index.interval.bytes": "0"}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with BrokerThread(tmp_path_factory.mktemp("rolls")) as running:
        yield running.port


@pytest.fixture
def client(port: int) -> Iterator[WireClient]:
    with WireClient(port) as connected:
        yield connected


def pipelined(client: WireClient, requests: list[ProduceRequest]) -> list[int]:
    """Send all, then hear all; the offsets that were given."""
    for request in requests:
        client.send(request, PRODUCE_BY_NAME)
    offsets = []
    for request in requests:
        ((answer,),) = (
            topic.partition_responses for topic in client.receive(request, ProduceResponse, PRODUCE_BY_NAME).responses
        )
        assert answer.error_code == ErrorCode.NONE, (ErrorCode(answer.error_code), answer.error_message)
        offsets.append(answer.base_offset)
    return offsets


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("own", [{}, {"flush.messages": "1"}, {"compression.type": "lz4"}])
def test_pipelined_batches_keep_their_order(client: WireClient, topic: str, acks: int, own: dict[str, str]) -> None:
    create_topic(client, topic, configs={**TINY_SEGMENTS, **own})
    contents = [b"%d" % number for number in range(200)]
    offsets = pipelined(client, [produce_request(topic, batch(content), acks=acks) for content in contents])
    assert offsets == list(range(200))
    assert consume(client, topic, 200) == contents


def test_batches_stamped_by_the_broker(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={**TINY_SEGMENTS, "message.timestamp.type": "LogAppendTime"})
    contents = [b"%d" % number for number in range(100)]
    assert pipelined(client, [produce_request(topic, batch(content)) for content in contents]) == list(range(100))
    assert consume(client, topic, 100) == contents


def test_batches_of_all_codecs(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs=TINY_SEGMENTS)
    requests = [
        produce_request(topic, compressed(Codec(number % 5), b"a%d" % number, b"b%d" % number)) for number in range(100)
    ]
    assert pipelined(client, requests) == list(range(0, 200, 2))
    assert consume(client, topic, 200) == [b"%c%d" % (letter, number) for number in range(100) for letter in b"ab"]


def test_two_connections_each_keep_their_order(client: WireClient, topic: str, port: int) -> None:
    create_topic(client, topic, configs=TINY_SEGMENTS)
    with WireClient(port) as other:
        for number in range(100):
            for name, producer in ((b"a", client), (b"b", other)):
                producer.send(produce_request(topic, batch(b"%s%d" % (name, number))), PRODUCE_BY_NAME)
        for producer in (client, other):
            for _ in range(100):
                producer.receive(produce_request(topic, b""), ProduceResponse, PRODUCE_BY_NAME)
    stored = consume(client, topic, 200)
    for name in (b"a", b"b"):
        assert [value for value in stored if value and value[:1] == name] == [b"%s%d" % (name, n) for n in range(100)]


def test_idempotent_batches_and_their_repetitions(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs=TINY_SEGMENTS)
    producer = new_producer_id(client)
    requests = [
        produce_request(topic, batch(b"%d" % sequence, producer_id=producer, producer_epoch=0, base_sequence=sequence))
        for sequence in range(100)
        for _ in range(2)
    ]
    assert pipelined(client, requests) == [number // 2 for number in range(200)]
    assert fetch(client, topic, 0).high_watermark == 100


def test_acks_0(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs=TINY_SEGMENTS)
    for number in range(200):
        client.send(produce_request(topic, batch(b"%d" % number), acks=0), PRODUCE_BY_NAME)
    assert consume(client, topic, 200) == [b"%d" % number for number in range(200)]


def test_a_bad_batch_among_good_ones_is_refused_alone(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs=TINY_SEGMENTS)
    requests = [produce_request(topic, batch(b"%d" % number)) for number in range(60)]
    for bad in range(0, 60, 7):
        requests[bad] = produce_request(topic, batch(b"bad")[:-1] + b"?")
    for request in requests:
        client.send(request, PRODUCE_BY_NAME)
    codes = []
    for request in requests:
        (answered,) = client.receive(request, ProduceResponse, PRODUCE_BY_NAME).responses
        codes.append(answered.partition_responses[0].error_code)
    assert codes == [0 if number % 7 else ErrorCode.CORRUPT_MESSAGE for number in range(60)]
    good = [b"%d" % number for number in range(60) if number % 7]
    assert consume(client, topic, len(good)) == good


def test_segments_were_rolled_and_are_read_after_a_restart(tmp_path: Path) -> None:
    contents = [b"%d" % number for number in range(200)]
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        create_topic(client, "topic", configs=TINY_SEGMENTS)
        pipelined(client, [produce_request("topic", batch(content)) for content in contents])
    assert len(list((tmp_path / "topic-0").glob("*.log"))) > 10
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert consume(client, "topic", 200) == contents
