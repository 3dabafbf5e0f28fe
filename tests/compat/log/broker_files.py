"""What a running broker writes when real clients use it, and how its files are given to another broker.

The topics, each with one partition:

| topic     | its files                                                                                         |
|-----------|---------------------------------------------------------------------------------------------------|
| codecs    | every codec from every client, plain and idempotent; several segments, rolled by time             |
| compacted | holes between records and inside batches                                                          |
| trimmed   | begins where DeleteRecords said                                                                   |
| retained  | its oldest segments are gone by size                                                              |
"""

from __future__ import annotations

import contextlib
import random
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CODECS, TIMEOUT_SECONDS, AdminClient, Message, Stored
from tests.peers.process import ServerProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient
    from kafka import TopicPartition as KafkaPythonPartition

HOUR_MS = 3_600_000
QUICK = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
}
_ROLLING = {"segment.ms": "1000", "index.interval.bytes": "1000"}
TOPICS: dict[str, dict[str, str]] = {
    "codecs": _ROLLING,
    "compacted": _ROLLING | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "trimmed": _ROLLING,
    "retained": _ROLLING | {"retention.bytes": "3000", "file.delete.delay.ms": "100"},
}
ROUNDS, ROUND_RECORDS = 18, 60
COMPACTED_OFFSETS = [0, 2, 4, 7, 8, 9]
TRIMMED_TO = 12
CHECKPOINTS = tuple(f"{name}-offset-checkpoint" for name in ("recovery-point", "replication", "log-start", "cleaner"))
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


@contextlib.contextmanager
def _clients(bootstrap: str) -> Iterator[list[AdminClient]]:
    kinds: tuple[type[AdminClient], ...] = (ConfluentClient, AiokafkaClient, KafkaPythonClient)
    clients = [kind(bootstrap) for kind in kinds]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def create_topics(broker: ServerProcess) -> None:
    client = ConfluentClient(broker.bootstrap)
    for topic, configs in TOPICS.items():
        client.create_topic(topic, configs=configs)


def write_everything(broker: ServerProcess) -> None:
    """Fill the topics and wait until cleaner and retention have been there.

    The records are an hour old: producers that were silent for a day are forgotten.
    """
    start_ms = int(time.time() * 1000) - HOUR_MS
    with _clients(broker.bootstrap) as clients:
        write_codecs(clients, start_ms)
        for topic in ("trimmed", "retained"):
            for number in range(8):
                sent = [Message(b"%d" % number * 500, timestamp_ms=start_ms + number * 2000) for _ in range(3)]
                clients[number % 3].produce(topic, 0, sent, codec=CODECS[number % 5 if topic == "trimmed" else 0])
        for number, keys in enumerate((b"abcde", b"bdbd", b"a")):
            sent = [Message(b"%d" % number * 50, bytes([key]), (), start_ms + number * 2000) for key in keys]
            clients[number].produce("compacted", 0, sent, codec=CODECS[number + 1], idempotent=True)
        place = TopicPartition("trimmed", 0, TRIMMED_TO)
        admin = ConfluentAdmin({"bootstrap.servers": broker.bootstrap})
        admin.delete_records([place])[place].result(TIMEOUT_SECONDS)
        eventually(lambda: [record.offset for record in read_to_end(broker, "compacted")], COMPACTED_OFFSETS)
        eventually(lambda: (clients[0].offset_at("retained", 0, "earliest") or 0) > 0, True)
        trimmed = broker.partition_directory("trimmed", 0)
        eventually(lambda: min(path.stem for path in trimmed.glob("*.log")), f"{TRIMMED_TO:020}")


def write_codecs(clients: list[AdminClient], start_ms: int) -> None:
    dice = random.Random(18)
    for number in range(ROUNDS):
        messages = [
            Message(
                dice.randbytes(300),
                key=None if at % 7 == 0 else b"key %d" % at,
                headers=(("n", b"%d" % number), ("empty", b"")) if at % 5 == 0 else (),
                timestamp_ms=start_ms + number // 3 * 2000 + at % 10,
            )
            for at in range(ROUND_RECORDS)
        ]
        clients[number % 3].produce("codecs", 0, messages, codec=CODECS[number % 5], idempotent=number % 4 != 3)


def read_to_end(broker: ServerProcess, topic: str) -> list[Stored]:
    """Every record of the topic's partition, with a real client."""
    settings = {"group.id": "never-joined", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
    whole = {"auto.offset.reset": "earliest", "enable.partition.eof": True, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **settings, **whole})
    records: list[Stored] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None, f"{len(records)} records of {topic} came, and not the end of it"
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return records
            records.append(ConfluentClient._stored(message))
    finally:
        consumer.close()


def read_everything(broker: ServerProcess) -> dict[str, list[Stored]]:
    return {topic: read_to_end(broker, topic) for topic in TOPICS}


def producers(broker: ServerProcess) -> set[tuple[Any, ...]]:
    """Id, epoch, last sequence and last timestamp of every producer that the partition with all codecs remembers."""
    place = KafkaPythonPartition("codecs", 0)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    with contextlib.closing(admin):
        return {tuple(state)[:4] for state in admin.describe_producers([place])[place].active_producers}


def copy_of(data: Path, place: Path) -> Path:
    """The files of a broker that does not run, kept aside; without those of its metadata."""
    place.mkdir()
    for topic in TOPICS:
        shutil.copytree(data / f"{topic}-0", place / f"{topic}-0")
    for name in (*CHECKPOINTS, CLEAN_SHUTDOWN):
        if (data / name).exists():
            shutil.copy2(data / name, place)
    return place


def give(files: Path, data: Path) -> None:
    """Put the files in the place of another broker's, which does not run and has the same topics under ids of its own.

    With the marker of a clean shutdown where the writer left one, and without it where it was killed.
    """
    for topic in TOPICS:
        identity = (data / f"{topic}-0" / "partition.metadata").read_bytes()
        shutil.rmtree(data / f"{topic}-0")
        shutil.copytree(files / f"{topic}-0", data / f"{topic}-0")
        (data / f"{topic}-0" / "partition.metadata").write_bytes(identity)
    for name in (*CHECKPOINTS, CLEAN_SHUTDOWN):
        (data / name).unlink(missing_ok=True)
        if (files / name).exists():
            shutil.copy2(files / name, data)
