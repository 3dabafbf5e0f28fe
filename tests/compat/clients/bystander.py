"""A producer and a consumer that mind their own business while others misbehave.

What must stay true: every record is acknowledged, every record is read once and in order, and neither client ever sees
an error. So whatever a test does to the broker, `check` afterwards says whether anybody else noticed.
"""

from __future__ import annotations

import threading
import time
from array import array
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.002


class Bystander:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._problems: list[str] = []
        self._sent = 0
        self._acknowledged = 0
        self._read = 0
        self._latencies_seconds = array("d")
        self._over = threading.Event()
        common = {"bootstrap.servers": bootstrap, "error_cb": self._noticed}
        self._producer = Producer({**common, "acks": "all", "linger.ms": 0, "message.timeout.ms": 10_000})
        self._consumer = Consumer({**common, "group.id": "never-joined", "enable.auto.commit": False})
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """A hundred records more make it from end to end, and nothing went wrong so far."""
        goal = self._read + 100
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._read < goal and not self._problems:
            assert time.monotonic() < deadline, f"stuck: sent {self._sent}, acknowledged and read {self._counts()}"
            time.sleep(0.005)
        assert not self._problems, f"others noticed: {self._problems[:5]}"

    def finish(self) -> None:
        """Stop sending; all that was sent must have been acknowledged."""
        self._over.set()
        for thread in self._threads:
            thread.join(_PATIENCE_SECONDS)
        left = self._producer.flush(_PATIENCE_SECONDS)
        self._consumer.close()
        assert not left, f"{left} records were never acknowledged"
        assert self._acknowledged == self._sent
        assert not self._problems, f"others noticed: {self._problems[:5]}"

    def _counts(self) -> tuple[int, int]:
        return self._acknowledged, self._read

    def _noticed(self, error: KafkaError) -> None:
        self._problems.append(f"error callback: {error}")

    @property
    def served(self) -> int:
        """Records that made it from end to end."""
        return self._read

    def latency_seconds(self) -> tuple[float, float, float]:
        """How long records took to be acknowledged: the median, the 99th percentile, the longest."""
        ordered = sorted(self._latencies_seconds) or [0.0]
        return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100], ordered[-1]

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self._problems.append(f"delivery failed: {error}")
        self._latencies_seconds.append(message.latency() or 0.0)
        self._acknowledged += 1

    def _produce(self) -> None:
        while not self._over.is_set():
            self._producer.produce(self._topic, b"%d" % self._sent, partition=0, on_delivery=self._delivered)
            self._sent += 1
            self._producer.poll(_PAUSE_SECONDS)

    def _consume(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])
        while not self._over.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                self._problems.append(f"reading failed: {error}")
            elif message.value() != b"%d" % self._read:
                self._problems.append(f"expected record {self._read}, got {message.value()!r}")
            self._read += 1
