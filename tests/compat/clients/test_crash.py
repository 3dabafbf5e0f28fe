"""A broker that is killed at any moment loses nothing it acknowledged, keeps the order and stores nothing twice.

In most rounds the last answers before the kill are lost on the way, so that batches which are stored are sent again.
Five rounds; `OTTLA_SOAK=1` makes it fifty. `OTTLA_SEED` repeats the moments of an earlier run.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.proxy import Proxy
from tests.conftest import start_broker
from tests.peers.ports import LOOPBACK, free_port

_ROUNDS = 50 if os.environ.get("OTTLA_SOAK") else 5
_PARTITIONS = 4
_LONGEST_ROUND_SECONDS = 0.8
_LONGEST_SILENCE_SECONDS = 0.1
_SHARE_OF_LOST_ANSWERS = 0.7
_FLUSH_SECONDS = 60.0


class NumberedProducer:
    """Sends 0, 1, 2... to every partition, some ten thousand a second, idempotent, with five requests in flight."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent = 0
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(_PARTITIONS)]
        self.problems: list[str] = []
        self._topic = topic
        self._over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 5,
                "linger.ms": 1,
                "batch.num.messages": 100,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for_progress(self) -> None:
        """A kill means something only while records are on their way: the client may need a second to reconnect."""
        before = self._acknowledged_count()
        deadline = time.monotonic() + _FLUSH_SECONDS
        while self._acknowledged_count() == before:
            assert time.monotonic() < deadline, f"nothing was acknowledged for {_FLUSH_SECONDS} s; {self.problems[:5]}"
            time.sleep(0.005)

    def finish(self) -> None:
        """Stop sending and wait until everything is acknowledged."""
        self._over.set()
        self._thread.join(_FLUSH_SECONDS)
        left = self._producer.flush(_FLUSH_SECONDS)
        assert not left, f"{left} records were not acknowledged {_FLUSH_SECONDS} s after the last restart"

    def _acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged))

    def _run(self) -> None:
        while not self._over.is_set():
            for partition in range(_PARTITIONS):
                self._send(partition, self.sent)
            self.sent += 1
            self._producer.poll(0.001 if self.sent % 5 == 0 else 0)

    def _send(self, partition: int, number: int) -> None:
        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self.problems.append(f"{partition}/{number}: {error}")
            else:
                self.acknowledged[partition][number] = message.offset()

        while True:
            try:
                self._producer.produce(self._topic, b"%d" % number, partition=partition, on_delivery=delivered)
            except BufferError:
                self._producer.poll(0.05)
            else:
                return


@pytest.mark.timeout(120 + 20 * _ROUNDS)
def test_killed_under_load(target: str, tmp_path: Path, topic: str) -> None:
    seed = int(os.environ.get("OTTLA_SEED") or secrets.randbelow(1 << 32))
    sys.stdout.write(f"OTTLA_SEED={seed}\n")
    moments = random.Random(seed)
    port = free_port()
    proxy = Proxy(port)
    told = {"advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{proxy.port}"}
    server = start_broker(target, tmp_path / "broker", port, told)
    try:
        configs = {"segment.bytes": "1048576"}
        ConfluentClient(server.bootstrap).create_topic(topic, partitions=_PARTITIONS, configs=configs)
        producer = NumberedProducer(f"{LOOPBACK}:{proxy.port}", topic)
        for _ in range(_ROUNDS):
            producer.wait_for_progress()
            time.sleep(moments.uniform(0.0, _LONGEST_ROUND_SECONDS))
            if moments.random() < _SHARE_OF_LOST_ANSWERS:
                proxy.mute()
                time.sleep(moments.uniform(0.0, _LONGEST_SILENCE_SECONDS))
            server.kill()
            server.start()
        producer.finish()
        assert not producer.problems, f"{len(producer.problems)} deliveries failed: {producer.problems[:5]}"
        _check_everything_is_there(server.bootstrap, topic, producer)
        server.stop()
        server.start()
        _check_everything_is_there(server.bootstrap, topic, producer)
    finally:
        server.kill()
        proxy.close()


def _check_everything_is_there(bootstrap: str, topic: str, producer: NumberedProducer) -> None:
    """Each number once and in order; each where its acknowledgement said."""
    assert producer.sent > 0
    client = ConfluentClient(bootstrap)
    for partition in range(_PARTITIONS):
        end = client.offset_at(topic, partition, "latest")
        assert end is not None
        records = client.consume(topic, partition, 0, end)
        numbers = [int(record.value or b"-1") for record in records]
        assert numbers == list(range(producer.sent)), _first_difference(numbers, producer.sent)
        offsets = {int(record.value or b"-1"): record.offset for record in records}
        told = {number: offset for number, offset in producer.acknowledged[partition].items() if offset >= 0}
        assert len(producer.acknowledged[partition]) == producer.sent
        assert told.items() <= offsets.items()


def _first_difference(numbers: list[int], sent: int) -> str:
    position = next((at for at, number in enumerate(numbers) if number != at), min(len(numbers), sent))
    return f"{sent} sent, {len(numbers)} stored; from offset {position} on: {numbers[position : position + 10]}"
