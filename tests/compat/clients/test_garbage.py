"""Batches with a right CRC over bytes that are no records: whoever sends them, nobody else is troubled.

Apache Kafka reads every record and refuses such a batch. Ottla looks into records only where the topic needs it, so on
a plain topic it stores what it was given; the story after that is the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.model import CREATE_TIME_MS, Client, Message
from tests.damage.garbage import GARBAGE_AT_MS, garbage
from tests.peers.process import ServerProcess
from tests.unit.broker.api.questions import create_topic, fetch, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.records import Codec

pytestmark = pytest.mark.timeout(120)

CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
REFUSED = {
    "ottla": (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE),
    "kafka": (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR),
}


@pytest.fixture
def wire(broker: ServerProcess) -> Iterator[WireClient]:
    assert broker.port is not None
    with WireClient(broker.port) as client:
        yield client


@pytest.mark.parametrize("codec", CODECS)
def test_what_it_is_answered(wire: WireClient, target: str, topic: str, codec: Codec) -> None:
    create_topic(wire, topic)
    answers = (ErrorCode.NONE,) if target == "ottla" else REFUSED[target]
    assert ErrorCode(produce(wire, topic, garbage(codec)).error_code) in answers
    create_topic(wire, f"{topic}-compacted", configs={"cleanup.policy": "compact"})
    assert ErrorCode(produce(wire, f"{topic}-compacted", garbage(codec)).error_code) in REFUSED[target]
    assert fetch(wire, f"{topic}-compacted", 0).high_watermark == 0


@pytest.mark.parametrize("adapter", [ConfluentClient, AiokafkaClient, KafkaPythonClient])
def test_readers_of_everything_else_go_on(
    broker: ServerProcess, wire: WireClient, target: str, topic: str, adapter: type[Client]
) -> None:
    client = adapter(broker.bootstrap)
    client.create_topic(topic, partitions=2)
    before = [Message(b"before %d" % number, timestamp_ms=CREATE_TIME_MS + number) for number in range(3)]
    after = [Message(b"after %d" % number, timestamp_ms=CREATE_TIME_MS + 100 + number) for number in range(3)]
    client.produce(topic, 0, before)
    stored = 0
    for codec in CODECS:
        stored += produce(wire, topic, garbage(codec)).error_code == ErrorCode.NONE
    assert stored == (len(CODECS) if target == "ottla" else 0)
    next_offset = len(before) + stored
    client.produce(topic, 0, after)
    client.produce(topic, 1, after)
    for partition, start, expected in ((0, 0, before), (0, next_offset, after), (1, 0, after)):
        found = client.consume(topic, partition, start, len(expected))
        assert [(each.offset, each.value) for each in found] == [
            (start + index, message.value) for index, message in enumerate(expected)
        ]
    assert client.offset_at(topic, 0, CREATE_TIME_MS + 1) == 1
    assert client.offset_at(topic, 0, CREATE_TIME_MS + 100) == next_offset
    # Records that do not read are found by what their header says.
    assert client.offset_at(topic, 0, GARBAGE_AT_MS) == len(before)
    client.close()


def test_the_state_of_producers_is_told(wire: WireClient, target: str, topic: str) -> None:
    create_topic(wire, topic)
    produce(wire, topic, garbage(Codec.NONE, producer_id=77))
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    ((answer,),) = (each.partitions for each in wire.ask(request, DescribeProducersResponse).topics)
    assert answer.error_code == ErrorCode.NONE
    assert [each.producer_id for each in answer.active_producers] == ([77] if target == "ottla" else [])
