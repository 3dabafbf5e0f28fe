"""Brokers of both kinds that are killed, restarted and slowed while clients write and read: nothing that was
acknowledged is lost, nothing comes twice, and every partition keeps its order.

One round of each trouble; `OTTLA_SOAK=1` makes it ten. `OTTLA_SEED` repeats the moments of an earlier run.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compat.clients.groups.conftest import QUICK
from tests.conftest import start_broker
from tests.peers.paths import PeerMissing
from tests.peers.ports import free_port
from tests.peers.process import ServerProcess

from ottla import Admin, Consumer, Producer
from ottla.client.admin import NewTopic
from ottla.client.producer.batches import Delivery

PARTITIONS = 3
PATIENCE_SECONDS = 60.0
_ROUNDS = 10 if os.environ.get("OTTLA_SOAK") else 1
_QUICK: dict[str, Any] = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}


def killed(server: ServerProcess, moments: random.Random) -> None:
    server.kill()
    time.sleep(moments.uniform(0.0, 0.5))
    server.start()


def restarted(server: ServerProcess, moments: random.Random) -> None:
    server.stop()
    time.sleep(moments.uniform(0.0, 0.5))
    server.start()


def slowed(server: ServerProcess, moments: random.Random) -> None:
    """It hardly gets to work for a second, but is not gone."""
    for _ in range(10):
        with server.paused():
            time.sleep(moments.uniform(0.05, 0.15))
        time.sleep(moments.uniform(0.0, 0.01))


TROUBLES: tuple[Callable[[ServerProcess, random.Random], None], ...] = (killed, restarted, slowed)


@pytest.fixture(params=["ottla", "kafka"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    try:
        server = start_broker(request.param, tmp_path / "broker", free_port(), QUICK)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


class Writing:
    """Numbers 0, 1, 2 ... in every partition, each sent when the one before was handed over."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer: Producer[bytes, bytes] = Producer(bootstrap, linger_ms=1, delivery_timeout_ms=120_000, **_QUICK)
        self._topic = topic
        self._is_over = threading.Event()
        self.deliveries: list[list[Delivery]] = [[] for _ in range(PARTITIONS)]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(0.002):
            for partition in range(PARTITIONS):
                self.deliveries[partition].append(self._producer.send(self._topic, b"%d" % number, partition=partition))
            number += 1

    def finish(self) -> int:
        """How many numbers every partition has; all of them were acknowledged, in their order."""
        self._is_over.set()
        self._thread.join()
        self._producer.close(PATIENCE_SECONDS)
        for deliveries in self.deliveries:
            assert [delivery.result(0).offset for delivery in deliveries] == list(range(len(deliveries)))
        return len(self.deliveries[0])


class Reading:
    """A member of a group, beside the writing; it commits by itself."""

    def __init__(self, bootstrap: str, topic: str, protocol: str) -> None:
        self._consumer: Consumer[bytes, bytes] = Consumer(
            bootstrap,
            group_id=f"{topic}-group",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
            **_QUICK,
        )
        self._consumer.subscribe([topic])
        self._wanted = -1
        self.seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.problems: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_done():
                for record in self._consumer.poll(0.1):
                    assert record.value is not None
                    self.seen[record.partition].append(int(record.value))
        except BaseException as error:
            self.problems.append(error)

    def _is_done(self) -> bool:
        return self._wanted >= 0 and all(seen and seen[-1] == self._wanted - 1 for seen in self.seen)

    def finish(self, wanted: int) -> None:
        self._wanted = wanted
        self._thread.join(PATIENCE_SECONDS)
        assert self.problems == []
        assert not self._thread.is_alive(), [seen[-1:] for seen in self.seen]
        self._consumer.close()


@pytest.mark.timeout(240 + 60 * _ROUNDS)
def test_what_is_written_is_there_once_and_in_order(server: ServerProcess, topic: str) -> None:
    seed = int(os.environ.get("OTTLA_SEED") or secrets.randbelow(1 << 32))
    sys.stdout.write(f"OTTLA_SEED={seed}\n")
    moments = random.Random(seed)
    troubles = list(TROUBLES) * _ROUNDS
    moments.shuffle(troubles)
    with Admin(server.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS)]).raise_for_errors()
    reading = Reading(server.bootstrap, topic, moments.choice(["classic", "consumer"]))
    writing = Writing(server.bootstrap, topic)
    for trouble in troubles:
        time.sleep(moments.uniform(0.2, 1.0))
        trouble(server, moments)
    time.sleep(0.5)
    count = writing.finish()
    reading.finish(count)
    for seen in reading.seen:
        # What was read before a position was lost may be read again; nothing is left out.
        assert sorted(set(seen)) == list(range(count))
    with Consumer(server.bootstrap, **_QUICK) as consumer:
        consumer.assign([(topic, partition, 0) for partition in range(PARTITIONS)])
        table = consumer.to_arrow()
    for partition in range(PARTITIONS):
        rows = [row for row in table.select(["partition", "value"]).to_pylist() if row["partition"] == partition]
        assert [int(row["value"]) for row in rows] == list(range(count))
