"""The two brokers of a run, as processes, and the topics that come and go on them.

Both stay up for the whole run and take turns: the one whose turn it is not has no clients. That keeps the two halves
of a comparison seconds apart, and lets the JVM stay warm.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.peers.kafka import KafkaBroker
from tests.peers.ottla import OttlaBroker
from tests.peers.process import ServerProcess

from bench.rows import KAFKA, OTTLA
from bench.wire import Connection, create_topic, delete_topic

# Deleted logs go at once, so that one measurement does not leave its dirty pages to the next. The records are from a
# fixed day in the past, and none may expire.
PROPERTIES = {"log.segment.delete.delay.ms": "0", "log.retention.ms": "-1"}
_GONE_SECONDS = 20.0


def new_broker(name: str, directory: Path, properties: Mapping[str, str] | None = None) -> ServerProcess:
    """A broker with its own defaults under `directory`, not started yet; Kafka has a heap of 1 GB."""
    settings = PROPERTIES | dict(properties or {})
    match name:
        case "kafka":
            return KafkaBroker(directory, properties=settings)
        case "ottla":
            return OttlaBroker(directory, properties=settings)
        case other:
            raise ValueError(f"expected {KAFKA} or {OTTLA}, got {other}")


class Peers:
    """The brokers of the run by name, each started when it is first needed."""

    def __init__(self, names: tuple[str, ...], directory: Path) -> None:
        self.names = names
        self.directory = directory
        self._running: dict[str, ServerProcess] = {}

    def get(self, name: str) -> ServerProcess:
        broker = self._running.get(name)
        if broker is None or not broker.running:
            broker = new_broker(name, self.directory / f"{name}-{len(os.listdir(self.directory))}").start()
            self._running[name] = broker
        return broker

    def stop(self) -> None:
        for broker in self._running.values():
            if broker.running:
                broker.stop()
        self._running.clear()


def stop_broker(name: str, brokers: dict[str, ServerProcess]) -> None:
    """Also after a failure: it may never have begun, or have ended."""
    broker = brokers.pop(name, None)
    if broker is not None and broker.running:
        broker.stop()


def connect(broker: ServerProcess) -> Connection:
    return Connection(port_of(broker))


def port_of(broker: ServerProcess) -> int:
    return int(broker.bootstrap.rpartition(":")[2])


@contextlib.contextmanager
def fresh_topic(broker: ServerProcess, topic: str, partitions: int = 1) -> Iterator[bytes]:
    """A new topic, its id handed to the block; gone from the disk afterwards."""
    with connect(broker) as connection:
        topic_id = create_topic(connection, topic, partitions)
    os.sync()
    try:
        yield topic_id
    finally:
        remove_topic(broker, topic)


def remove_topic(broker: ServerProcess, topic: str) -> None:
    """Delete it and wait until its directories are gone."""
    with connect(broker) as connection:
        delete_topic(connection, topic)
    deadline = time.monotonic() + _GONE_SECONDS
    while any(broker.data_directory.glob(f"{topic}-*")) and time.monotonic() < deadline:
        time.sleep(0.02)


def require_disk(directory: Path, needed_bytes: int) -> None:
    """Fail before anything is started when the logs of the run would not fit."""
    free = shutil.disk_usage(directory).free
    if free < needed_bytes:
        raise OSError(
            f"the run needs {needed_bytes / 1e9:.0f} GB on the disk, {free / 1e9:.0f} GB are free; try --quick"
        )
