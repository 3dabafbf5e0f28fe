"""aiokafka beside the other client libraries."""

from __future__ import annotations

import asyncio
import time

from aiokafka import AIOKafkaProducer

from bench.job import Figures, Specification, job_main
from bench.jobs.library import ACKS, BATCH_BYTES, LINGER_MS, VALUES, rate


async def produce(specification: Specification) -> Figures:
    """`send` waits for room only; with `reports`, what became of each record is awaited at the end."""
    topic, records = specification["topic"], specification["records"]
    producer = AIOKafkaProducer(
        bootstrap_servers=specification["bootstrap"],
        acks=ACKS,
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        max_batch_size=BATCH_BYTES,
        max_request_size=2 * BATCH_BYTES,
    )
    await producer.start()
    try:
        send = producer.send
        started = time.perf_counter()
        if specification.get("reports"):
            for sent in [await send(topic, VALUES[number % 1000], partition=0) for number in range(records)]:
                await sent
        else:
            for number in range(records):
                await send(topic, VALUES[number % 1000], partition=0)
            await producer.flush()
        return rate(records, time.perf_counter() - started)
    finally:
        await producer.stop()


def work(specification: Specification) -> Figures:
    return asyncio.run(produce(specification))


if __name__ == "__main__":
    job_main(work)
