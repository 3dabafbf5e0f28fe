"""Ottla's own clients beside the other libraries: sync, async and columnar."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from bench.batches import RECORD_BYTES
from bench.job import Figures, Specification, job_main
from bench.jobs.library import (
    ACKS,
    BATCH_BYTES,
    LINGER_MS,
    SILENCE_SECONDS,
    VALUES,
    LibraryError,
    Stopwatch,
    pace,
    pace_in_loop,
    peak_megabytes,
    rate,
)
from ottla import AsyncConsumer, AsyncProducer, Consumer, Producer

_ROWS_AT_ONCE = 100_000


def _producing(specification: Specification, linger_ms: int = LINGER_MS) -> dict[str, Any]:
    return {
        "bootstrap_servers": specification["bootstrap"],
        "acks": ACKS,
        "linger_ms": linger_ms,
        "batch_size": BATCH_BYTES,
        "compression_type": specification.get("codec", "none"),
        "max_request_size": 2 * BATCH_BYTES,
    }


class _Reports:
    def __init__(self) -> None:
        self.count = 0

    def report(self, metadata: object, error: object) -> None:
        if error is None:
            self.count += 1


def produce(specification: Specification) -> Figures:
    topic, records = specification["topic"], specification["records"]
    reports = _Reports()
    options: dict[str, Any] = {"on_delivery": reports.report} if specification.get("reports") else {}
    with Producer(**_producing(specification)) as producer:
        producer.partitions_for(topic)
        send = producer.send
        started = time.perf_counter()
        for number in range(records):
            send(topic, VALUES[number % 1000], partition=0, **options)
        producer.flush(SILENCE_SECONDS)
        seconds = time.perf_counter() - started
    if options and reports.count != records:
        raise LibraryError(f"{records} records were sent, {reports.count} were reported")
    return rate(records, seconds)


async def produce_async(specification: Specification) -> Figures:
    """`drain` after each record, as programs with a loop do. With `reports`, every delivery is awaited."""
    topic, records = specification["topic"], specification["records"]
    async with AsyncProducer(**_producing(specification)) as producer:
        await producer.partitions_for(topic)
        send, drain = producer.send, producer.drain
        started = time.perf_counter()
        if specification.get("reports"):
            deliveries = []
            for number in range(records):
                deliveries.append(send(topic, VALUES[number % 1000], partition=0))
                await drain()
            for delivery in deliveries:
                await delivery
        else:
            for number in range(records):
                send(topic, VALUES[number % 1000], partition=0)
                await drain()
            await producer.flush()
        return rate(records, time.perf_counter() - started)


def send_table(specification: Specification) -> Figures:
    """A table is made once; what is timed is the way of its rows into the log."""
    import pyarrow as pa

    topic, records = specification["topic"], specification["records"]
    repeats = specification.get("record_bytes", RECORD_BYTES) // RECORD_BYTES
    rows = min(_ROWS_AT_ONCE // repeats, records)
    values = [value * repeats for value in VALUES[:rows]]
    table = pa.table({"value": pa.array((values * (rows // len(values) + 1))[:rows], pa.binary())})
    partition = specification.get("partition", 0)
    with Producer(**_producing(specification)) as producer:
        producer.partitions_for(topic)
        started = time.perf_counter()
        sent = 0
        while sent < records:
            producer.send_table(topic, table[: records - sent], value="value", partition=partition)
            sent += min(table.num_rows, records - sent)
        producer.flush(SILENCE_SECONDS)
        return rate(sent, time.perf_counter() - started)


def _consumer(specification: Specification, place: tuple[Any, ...]) -> Consumer[bytes, bytes]:
    consumer: Consumer[bytes, bytes] = Consumer(specification["bootstrap"], **specification.get("settings", {}))
    consumer.assign([place])
    return consumer


def consume(specification: Specification) -> Figures:
    """From the first record that arrives to the last."""
    records = specification["records"]
    with _consumer(specification, (specification["topic"], 0, 0)) as consumer:
        iterator = iter(consumer)
        next(iterator)
        started = time.perf_counter()
        for number, record in enumerate(iterator, 2):
            assert record.value is not None
            if number >= records:
                break
        return rate(records - 1, time.perf_counter() - started)


def tables(specification: Specification) -> Figures:
    records = specification["records"]
    received = at_start = 0
    started = 0.0
    with _consumer(specification, (specification["topic"], 0, 0)) as consumer:
        for table in consumer.tables(timeout=SILENCE_SECONDS):
            received += table.num_rows
            if not started:
                started, at_start = time.perf_counter(), received
            if received >= records:
                break
    seconds = time.perf_counter() - started
    if received < records:
        raise LibraryError(f"expected {records} records, {received} came")
    return {**rate(received - at_start, seconds), "peak_mb": peak_megabytes()}


def drain(specification: Specification) -> Figures:
    """All of a large log, by `tables` or one record after the other: how much memory that takes at most."""
    if specification["by"] == "tables":
        return tables(specification)
    return {**consume(specification), "peak_mb": peak_megabytes()}


def latency(specification: Specification) -> Figures:
    topic = specification["topic"]
    stopwatch = Stopwatch(specification["rate"], specification["seconds"])
    with _consumer(specification, (topic, 0)) as consumer, Producer(**_producing(specification, 0)) as producer:
        consumer.seek_to_end()

        def receive() -> None:
            for record in consumer.records(timeout=SILENCE_SECONDS):
                stopwatch.arrived(record.value or b"")
                if stopwatch.is_done:
                    return

        receiver = threading.Thread(target=receive, daemon=True)
        receiver.start()
        pace(stopwatch, specification["rate"], lambda value: producer.send(topic, value, partition=0))
        producer.flush(SILENCE_SECONDS)
        receiver.join(SILENCE_SECONDS)
    return stopwatch.figures()


async def latency_async(specification: Specification) -> Figures:
    topic, rate_per_second = specification["topic"], specification["rate"]
    stopwatch = Stopwatch(rate_per_second, specification["seconds"])
    async with (
        AsyncConsumer(specification["bootstrap"]) as consumer,
        AsyncProducer(**_producing(specification, 0)) as producer,
    ):
        consumer.assign([(topic, 0)])
        consumer.seek_to_end()

        async def receive() -> None:
            async for record in consumer.records(timeout=SILENCE_SECONDS):
                stopwatch.arrived(record.value or b"")
                if stopwatch.is_done:
                    return

        receiving = asyncio.create_task(receive())
        await pace_in_loop(stopwatch, rate_per_second, lambda value: producer.send(topic, value, partition=0))
        await receiving
    return stopwatch.figures()


def work(specification: Specification) -> Figures:
    what = specification["what"]
    if what in ("produce_async", "latency_async"):
        return asyncio.run({"produce_async": produce_async, "latency_async": latency_async}[what](specification))
    known = {"produce": produce, "send_table": send_table, "consume": consume, "tables": tables, "drain": drain}
    return (known | {"latency": latency})[what](specification)


if __name__ == "__main__":
    job_main(work)
