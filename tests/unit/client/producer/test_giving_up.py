"""Records that are given up while somebody still works on them."""

import asyncio
import os
from typing import Any

import pytest

from ottla.client.errors import ClientClosed, OttlaError, Undelivered, Unfinished
from ottla.client.producer.batches import Batch, Delivery
from ottla.client.producer.producer import AsyncProducer
from ottla.records import Codec
from ottla.testing import TestBroker

PATIENCE_SECONDS = 60
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
        with pytest.raises(Undelivered):
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


class _Failing:
    """Numbers that cannot be counted, once: something that nobody expects, in the middle of an answer."""

    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics
        self._is_broken = True

    def __getattr__(self, name: str) -> Any:
        if name == "batch_written" and self._is_broken:
            self._is_broken = False
            raise ZeroDivisionError("counted by nothing")
        return getattr(self._metrics, name)


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_an_answer_that_cannot_be_carried_out_fails_its_records_at_once(
    ottla: TestBroker, is_idempotent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with AsyncProducer(ottla.bootstrap_servers, enable_idempotence=is_idempotent, linger_ms=5) as producer:
            sender: Any = producer.engine.sender
            sender._metrics = _Failing(sender._metrics)
            deliveries = [producer.send("t", b"lost from sight") for _ in range(2)]
            with pytest.raises(Undelivered, match="2 records"):
                await producer.flush(PATIENCE_SECONDS)
            for delivery in deliveries:
                with pytest.raises(OttlaError, match=r"answer of broker .*counted by nothing"):
                    await delivery
            assert (await producer.send("t", b"next")).offset == len(deliveries)
            assert producer.metrics()["buffer-available-bytes"] == producer.config.buffer_memory

    asyncio.run(run())
    assert "counted by nothing" in caplog.text
