"""What a broker answers to a producer that it has forgotten: the same for Ottla and Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import start_broker
from tests.unit.broker.api.questions import batch, create_topic, new_producer_id, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.02


@pytest.fixture
def client(target: str, tmp_path: Path) -> Iterator[WireClient]:
    """Of a broker that forgets quickly."""
    properties = {"producer.id.expiration.ms": "1", "producer.id.expiration.check.interval.ms": "50"}
    server = start_broker(target, tmp_path, properties=properties)
    assert server.port is not None
    with WireClient(server.port) as connected:
        yield connected
    server.stop()


def wait_until_forgotten(client: WireClient) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while client.ask(request, DescribeProducersResponse).topics[0].partitions[0].active_producers:
        assert time.monotonic() < deadline, "the producer is still known"
        time.sleep(POLL_SECONDS)


def test_whatever_a_forgotten_producer_sends_is_stored(client: WireClient) -> None:
    create_topic(client, "t")
    producer = new_producer_id(client)
    for offset, sequence in enumerate((0, 0, 41, 7)):
        records = batch(b"value", producer_id=producer, producer_epoch=0, base_sequence=sequence)
        answer = produce(client, "t", records)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, offset)
        wait_until_forgotten(client)
