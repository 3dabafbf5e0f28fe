"""confluent-kafka, as a user would write it: produce, consume by assignment, and the time from end to end."""

from __future__ import annotations

import struct
import threading
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Producer, TopicPartition

from bench.batches import RECORD_BYTES
from bench.job import Figures, Specification, job_main

_SILENCE_SECONDS = 30.0
_LATENCY_WARM_SECONDS = 1.0
_CONSUME_AT_ONCE = 10_000


class ClientError(RuntimeError):
    """The client reported an error, or records did not come back."""


def _raise(error: Any) -> None:
    if error.fatal():
        raise KafkaException(error)


def _producer(bootstrap: str, linger_ms: float) -> Any:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": 1,
            "linger.ms": linger_ms,
            "socket.nagle.disable": True,
            "queue.buffering.max.messages": 1_000_000,
            "error_cb": _raise,
        }
    )


def _consumer(bootstrap: str, topic: str, offset: int) -> Any:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "socket.nagle.disable": True,
            "error_cb": _raise,
        }
    )
    consumer.assign([TopicPartition(topic, 0, offset)])
    return consumer


def produce(bootstrap: str, topic: str, records: int) -> Figures:
    """As fast as `produce` can be called; the caller compares the end of the log with `records`."""
    producer = _producer(bootstrap, 5)
    value = bytes(RECORD_BYTES)
    producer.list_topics(topic, timeout=_SILENCE_SECONDS)
    send = producer.produce
    started = time.perf_counter()
    for _ in range(records):
        try:
            send(topic, value, partition=0)
        except BufferError:
            producer.poll(0.1)
            send(topic, value, partition=0)
    unsent = producer.flush(_SILENCE_SECONDS)
    seconds = time.perf_counter() - started
    if unsent:
        raise ClientError(f"{unsent} of {records} records were not acknowledged")
    return {"records_per_second": records / seconds, "seconds": seconds}


def consume(bootstrap: str, topic: str, records: int) -> Figures:
    """From the first record that arrives to the last of `records`."""
    consumer = _consumer(bootstrap, topic, OFFSET_BEGINNING)
    received = 0
    started = 0.0
    at_start = 0
    while received < records:
        messages = consumer.consume(_CONSUME_AT_ONCE, _SILENCE_SECONDS)
        if not messages:
            raise ClientError(f"expected {records} records, {received} came")
        if messages[-1].error():
            raise KafkaException(messages[-1].error())
        received += len(messages)
        if not started:
            started, at_start = time.perf_counter(), received
    seconds = time.perf_counter() - started
    consumer.close()
    return {"records_per_second": (received - at_start) / seconds, "seconds": seconds}


def latency(bootstrap: str, topic: str, rate: int, seconds: float) -> Figures:
    """Each record carries the time it was handed to the producer; a thread of its own waits for it at the other end."""
    consumer = _consumer(bootstrap, topic, OFFSET_END)
    producer = _producer(bootstrap, 0)
    ready = threading.Event()
    took: list[float] = []
    expected = int(rate * seconds)
    warm = int(rate * _LATENCY_WARM_SECONDS)

    def receive() -> None:
        while len(took) < expected + warm:
            message = consumer.poll(_SILENCE_SECONDS)
            now = time.perf_counter()
            if message is None or message.error():
                return
            (number, sent) = struct.unpack_from(">id", message.value())
            if number < 0:
                ready.set()
            else:
                took.append(now - sent)

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()
    filler = bytes(RECORD_BYTES - 12)
    deadline = time.monotonic() + _SILENCE_SECONDS
    while not ready.wait(0.05):
        if time.monotonic() > deadline:
            raise ClientError(f"no record came within {_SILENCE_SECONDS} s")
        producer.produce(topic, struct.pack(">id", -1, 0.0) + filler, partition=0)
        producer.poll(0)
    time.sleep(0.2)
    due = time.perf_counter()
    for number in range(expected + warm):
        due += 1 / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        producer.produce(topic, struct.pack(">id", number, time.perf_counter()) + filler, partition=0)
        producer.poll(0)
    producer.flush(_SILENCE_SECONDS)
    receiver.join(_SILENCE_SECONDS)
    if len(took) != expected + warm:
        raise ClientError(f"expected {expected + warm} records, {len(took)} came")
    consumer.close()
    counted = sorted(took[warm:])
    return {"p50_ms": counted[len(counted) // 2] * 1000, "p99_ms": counted[len(counted) * 99 // 100] * 1000}


def work(specification: Specification) -> Figures:
    bootstrap, topic = specification["bootstrap"], specification["topic"]
    match specification["what"]:
        case "produce":
            return produce(bootstrap, topic, specification["records"])
        case "consume":
            return consume(bootstrap, topic, specification["records"])
        case "latency":
            return latency(bootstrap, topic, specification["rate"], specification["seconds"])
        case other:
            raise ValueError(f"expected produce, consume or latency, got {other}")


if __name__ == "__main__":
    job_main(work)
