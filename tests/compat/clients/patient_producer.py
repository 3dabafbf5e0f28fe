"""`python -m tests.compat.clients.patient_producer <library> <bootstrap> <topic> <count>`: a producer over a restart.

Sends half of 0, 1, 2... to partition 0, idempotent, and says `half` when it is acknowledged. A line on its input makes
it send the rest, at a time when the broker may be away. The last line it prints has all offsets.

A process of its own: the libraries leave sockets behind when a connection is refused, and that is not a test's fault.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

TIMEOUT_SECONDS = 60.0


def _wait() -> None:
    sys.stdout.write("half\n")
    sys.stdout.flush()
    sys.stdin.readline()


def confluent(bootstrap: str, topic: str, halves: list[list[bytes]]) -> list[int]:
    from confluent_kafka import Producer

    offsets: list[int] = []

    def told(error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        offsets.append(message.offset())

    backoff = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **backoff})
    for number, half in enumerate(halves):
        if number:
            _wait()
        for value in half:
            producer.produce(topic, value, partition=0, on_delivery=told)
        producer.flush(TIMEOUT_SECONDS)
    return offsets


def aio(bootstrap: str, topic: str, halves: list[list[bytes]]) -> list[int]:
    from aiokafka import AIOKafkaProducer

    async def run() -> list[int]:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, retry_backoff_ms=50)
        async with producer:
            offsets: list[int] = []
            for number, half in enumerate(halves):
                if number:
                    await asyncio.to_thread(_wait)
                sent = [await producer.send(topic, value, partition=0) for value in half]
                offsets += [(await future).offset for future in sent]
            return offsets

    return asyncio.run(run())


def kafka_python(bootstrap: str, topic: str, halves: list[list[bytes]]) -> list[int]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, retry_backoff_ms=50)
    offsets: list[int] = []
    for number, half in enumerate(halves):
        if number:
            _wait()
        sent = [producer.send(topic, value, partition=0) for value in half]
        offsets += [future.get(timeout=TIMEOUT_SECONDS).offset for future in sent]
    producer.close()
    return offsets


LIBRARIES: dict[str, Callable[[str, str, list[list[bytes]]], list[int]]] = {
    "confluent-kafka": confluent,
    "aiokafka": aio,
    "kafka-python": kafka_python,
}


def main() -> None:
    warnings.simplefilter("ignore")
    library, bootstrap, topic, count = sys.argv[1:]
    values = [b"%d" % number for number in range(int(count))]
    middle = len(values) // 2
    offsets = LIBRARIES[library](bootstrap, topic, [values[:middle], values[middle:]])
    sys.stdout.write(json.dumps(offsets) + "\n")


if __name__ == "__main__":
    main()
