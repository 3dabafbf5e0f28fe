"""confluent-kafka beside the other client libraries."""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Producer, TopicPartition

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
    rate,
)

_AT_ONCE = 10_000
_POLL_EVERY = 1_000


def _raise(error: Any) -> None:
    if error.fatal():
        raise KafkaException(error)


def _producer(specification: Specification, linger_ms: float = LINGER_MS) -> Any:
    return Producer(
        {
            "bootstrap.servers": specification["bootstrap"],
            "acks": ACKS,
            "enable.idempotence": True,
            "linger.ms": linger_ms,
            "batch.size": BATCH_BYTES,
            "compression.type": specification.get("codec", "none"),
            "queue.buffering.max.messages": 1_000_000,
            "socket.nagle.disable": True,
            "error_cb": _raise,
        }
    )


def _consumer(specification: Specification, offset: int) -> Any:
    settings = {
        "bootstrap.servers": specification["bootstrap"],
        "group.id": "libraries",
        "enable.auto.commit": False,
        "socket.nagle.disable": True,
        "error_cb": _raise,
    }
    if specification.get("unpaused"):
        settings["fetch.queue.backoff.ms"] = 1
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(specification["topic"], 0, offset)])
    return consumer


def produce(specification: Specification) -> Figures:
    """As fast as `produce` can be called; with `reports`, each record has a callback."""
    producer, topic, records = _producer(specification), specification["topic"], specification["records"]
    reported = 0

    def report(error: Any, message: Any) -> None:
        nonlocal reported
        if error is None:
            reported += 1

    options = {"on_delivery": report} if specification.get("reports") else {}
    producer.list_topics(topic, timeout=SILENCE_SECONDS)
    send = producer.produce
    started = time.perf_counter()
    for number in range(records):
        try:
            send(topic, VALUES[number % 1000], partition=0, **options)
        except BufferError:
            producer.poll(0.1)
            send(topic, VALUES[number % 1000], partition=0, **options)
        if options and not number % _POLL_EVERY:
            producer.poll(0)
    unsent = producer.flush(SILENCE_SECONDS)
    seconds = time.perf_counter() - started
    if unsent or (options and reported != records):
        raise LibraryError(f"{unsent} of {records} records were not acknowledged, {reported} were reported")
    return rate(records, seconds)


def consume(specification: Specification) -> Figures:
    """From the first records that arrive to the last."""
    consumer, records = _consumer(specification, OFFSET_BEGINNING), specification["records"]
    received = at_start = 0
    started = 0.0
    while received < records:
        messages = consumer.consume(_AT_ONCE, SILENCE_SECONDS)
        if not messages:
            raise LibraryError(f"expected {records} records, {received} came")
        if messages[-1].error():
            raise KafkaException(messages[-1].error())
        received += len(messages)
        if not started:
            started, at_start = time.perf_counter(), received
    seconds = time.perf_counter() - started
    consumer.close()
    return rate(received - at_start, seconds)


def latency(specification: Specification) -> Figures:
    consumer, producer = _consumer(specification, OFFSET_END), _producer(specification, linger_ms=0)
    stopwatch = Stopwatch(specification["rate"], specification["seconds"])

    def receive() -> None:
        while not stopwatch.is_done:
            message = consumer.poll(SILENCE_SECONDS)
            if message is None or message.error():
                return
            stopwatch.arrived(message.value())

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()

    def send(value: bytes) -> None:
        producer.produce(specification["topic"], value, partition=0)
        producer.poll(0)

    pace(stopwatch, specification["rate"], send)
    producer.flush(SILENCE_SECONDS)
    receiver.join(SILENCE_SECONDS)
    consumer.close()
    return stopwatch.figures()


def work(specification: Specification) -> Figures:
    return {"produce": produce, "consume": consume, "latency": latency}[specification["what"]](specification)


if __name__ == "__main__":
    job_main(work)
