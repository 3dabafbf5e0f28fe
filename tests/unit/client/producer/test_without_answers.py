"""A producer with acks=0: what is done has left, and close loses nothing of it."""

import asyncio
from typing import Any

from tests.waiting import tries

from ottla.client.producer.producer import AsyncProducer
from ottla.testing import TestBroker

COUNT = 1500
VALUE_BYTES = 20_000


def test_what_was_flushed_arrives_although_the_producer_is_closed_at_once(ottla: TestBroker) -> None:
    """More than sockets hold, so that most of it waits for the broker to read."""
    ottla.create_topic("t")

    async def run() -> None:
        settings: dict[str, Any] = {"enable_idempotence": False, "batch_size": 200_000, "buffer_memory": 64_000_000}
        async with AsyncProducer(ottla.bootstrap_servers, acks=0, **settings) as producer:
            deliveries = [producer.send("t", b"%06d" % number + bytes(VALUE_BYTES)) for number in range(COUNT)]
            await producer.flush()
            assert all(delivery.done() and delivery.exception() is None for delivery in deliveries)

    asyncio.run(run())
    for _ in tries():
        if len(ottla.records("t")) >= COUNT:
            break
    assert [(record.value or b"")[:6] for record in ottla.records("t")] == [b"%06d" % number for number in range(COUNT)]
