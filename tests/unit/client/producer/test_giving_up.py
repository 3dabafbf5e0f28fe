"""Records that are given up while somebody still works on them."""

import asyncio
import os
from typing import Any

import pytest

from ottla.client.errors import ClientClosed, Unfinished
from ottla.client.producer.batches import Batch, Delivery
from ottla.client.producer.producer import AsyncProducer
from ottla.records import Codec
from ottla.testing import TestBroker

LARGE: dict[str, Any] = {"batch_size": 8_000_000, "max_request_size": 16_000_000, "linger_ms": 1000}


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_close_gives_up_records_that_are_being_compressed(ottla: TestBroker, codec: str) -> None:
    """A worker reads them, without the GIL and for long after everybody was told."""
    ottla.create_topic("t")

    async def run() -> list[Delivery]:
        producer = await AsyncProducer(ottla.bootstrap_servers, compression_type=codec, **LARGE).start()
        await producer.partitions_for("t")
        deliveries = [producer.send("t", os.urandom(500_000)) for _ in range(12)]
        with pytest.raises(Unfinished):
            await producer.flush(0.001)
        await producer.close(0.0)
        return deliveries

    assert {type(delivery.exception()) for delivery in asyncio.run(run())} == {ClientClosed}


def test_a_payload_that_comes_too_late_is_let_go(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> Batch:
        async with AsyncProducer(ottla.bootstrap_servers) as producer:
            delivery = producer.send("t", b"value")
            await delivery
            batch: Batch = delivery.batch
            batch.compress(Codec.GZIP, None)
            return batch

    assert asyncio.run(run()).payload is None
