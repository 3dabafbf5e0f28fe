"""Producers that were silent for `producer.id.expiration.ms` are forgotten."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import batch, create_topic, fetch, new_producer_id, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.testing import ManualClock

EXPIRATION_MS = 1000
ROUNDS = 100_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(tmp_path: Path, clock: ManualClock) -> Iterator[WireClient]:
    properties = {
        "producer.id.expiration.ms": str(EXPIRATION_MS),
        "producer.id.expiration.check.interval.ms": "1",
    }
    with (
        BrokerThread(tmp_path, properties, broker_clock=clock) as running,
        WireClient(running.port) as connected,
    ):
        yield connected


def known(client: WireClient) -> set[int]:
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    ((answer,),) = (topic.partitions for topic in client.ask(request, DescribeProducersResponse).topics)
    assert answer.error_code == ErrorCode.NONE
    return {producer.producer_id for producer in answer.active_producers}


def wait_until_known(client: WireClient, expected: set[int]) -> None:
    for _ in range(ROUNDS):
        if known(client) == expected:
            return
    raise AssertionError(f"{expected} expected, {known(client)} are known")


def test_a_silent_producer_is_forgotten(client: WireClient, clock: ManualClock) -> None:
    """Its next batch is taken whatever its sequence, and a repetition is not recognised any more."""
    create_topic(client, "t")
    silent, busy = new_producer_id(client), new_producer_id(client)

    def send(producer_id: int, sequence: int) -> int:
        records = batch(
            b"value",
            timestamp=clock.now_ms(),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        answer = produce(client, "t", records)
        assert answer.error_code == ErrorCode.NONE
        return answer.base_offset

    assert (send(silent, 0), send(silent, 0), send(busy, 0)) == (0, 0, 1)
    clock.advance(EXPIRATION_MS - 1)
    assert send(busy, 1) == 2
    for _ in range(100):  # The check runs meanwhile, and finds that it is not time yet.
        assert known(client) == {silent, busy}
    clock.advance(1)
    wait_until_known(client, {busy})
    assert send(silent, 0) == 3
    clock.advance(EXPIRATION_MS)
    wait_until_known(client, set())
    assert (send(silent, 41), send(busy, 1)) == (4, 5)
    assert known(client) == {silent, busy}
    assert fetch(client, "t", 0).high_watermark == 6
