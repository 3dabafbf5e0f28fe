"""A broker of its own for every Python client: restarts under a producer, and compaction with quick settings."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CODECS, CREATE_TIME_MS, TIMEOUT_SECONDS, AdminClient, Message
from tests.compat.clients.segments import read_batches
from tests.conftest import start_broker
from tests.peers.paths import REPOSITORY
from tests.peers.process import ServerProcess

pytestmark = pytest.mark.timeout(180)

CLIENTS: tuple[type[AdminClient], ...] = (ConfluentClient, AiokafkaClient, KafkaPythonClient)
RECORDS = 200


@pytest.fixture(scope="module")
def own_broker(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    quick = {"log.cleaner.backoff.ms": "100"}
    server = start_broker(target, tmp_path_factory.mktemp("restarts"), None, quick)
    yield server
    server.kill()


def offsets_on(bootstrap: str, topic: str) -> list[int]:
    """Every offset that can be read, first to last."""
    settings = {"group.id": "never-joined", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
    consumer = Consumer({"bootstrap.servers": bootstrap, "enable.partition.eof": True, **settings})
    offsets: list[int] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return offsets
            offsets.append(message.offset() or 0)
    finally:
        consumer.close()


def test_compacted_topics_with_holes(own_broker: ServerProcess, topic: str) -> None:
    """The clients take turns with the codecs; when the cleaner has been there, each reads what all of them wrote.

    Time stamps roll the segments, so three of them come about at once. Of the first two, which are cleaned, the last
    record of each key stays; the third is active and stays as it is.
    """
    configs = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"}
    rounds = (b"abcde", b"bdbd", b"a")
    clients = {kind.name: kind(own_broker.bootstrap) for kind in CLIENTS}
    written = [(name, codec, f"{topic}-{name}-{codec}") for name, codec in zip(cycle(clients), CODECS, strict=False)]
    with contextlib.ExitStack() as stack:
        for client in clients.values():
            stack.callback(client.close)
        for name, codec, place in written:
            clients[name].create_topic(place, configs=configs)
            for number, keys in enumerate(rounds):
                stamp = CREATE_TIME_MS + number * 1000
                messages = [Message(b"%d" % number * 50, key=bytes([key]), timestamp_ms=stamp) for key in keys]
                clients[name].produce(place, 0, messages, codec=codec)
        expected = [
            (0, b"a", b"0"),
            (2, b"c", b"0"),
            (4, b"e", b"0"),
            (7, b"b", b"1"),
            (8, b"d", b"1"),
            (9, b"a", b"2"),
        ]
        left = [offset for offset, _, _ in expected]
        for _, codec, place in written:
            eventually(lambda place=place: offsets_on(own_broker.bootstrap, place), left)  # type: ignore[misc]
            assert {batch.codec for batch in read_batches(own_broker.partition_directory(place, 0))} == {codec}
            for reader in clients.values():
                records = reader.consume(place, 0, 0, len(left))
                assert [(r.offset, r.key, (r.value or b"")[:1]) for r in records] == expected
        for reader in clients.values():
            # A position inside a hole reads on behind it.
            assert [record.offset for record in reader.consume(written[0][2], 0, 5, 3)] == [7, 8, 9]


@pytest.mark.parametrize(
    ("library", "killed"), [("confluent-kafka", False), ("aiokafka", True), ("kafka-python", True)]
)
def test_an_idempotent_producer_outlives_a_restart(
    own_broker: ServerProcess, topic: str, library: str, killed: bool
) -> None:
    """A producer sends while the broker is away: nothing is lost, nothing comes twice."""
    ConfluentClient(own_broker.bootstrap).create_topic(topic)
    arguments = [library, own_broker.bootstrap, topic, str(RECORDS)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.compat.clients.patient_producer", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=REPOSITORY,
        text=True,
    ) as producer:
        try:
            assert producer.stdin is not None
            assert producer.stdout is not None
            assert producer.stdout.readline() == "half\n"
            if killed:
                own_broker.kill()
            else:
                own_broker.stop()
            producer.stdin.write("go\n")
            producer.stdin.flush()
            own_broker.start()
            offsets = json.loads(producer.stdout.readline())
        finally:
            producer.kill()
            if not own_broker.running:
                own_broker.start()
    # A batch that was stored before its answer was lost is known again, but not always by its offset.
    assert {offset for offset in offsets if offset >= 0} <= set(range(RECORDS))
    assert len(offsets) == RECORDS
    records = ConfluentClient(own_broker.bootstrap).consume(topic, 0, 0, RECORDS)
    assert [record.value for record in records] == [b"%d" % number for number in range(RECORDS)]
    assert ConfluentClient(own_broker.bootstrap).offset_at(topic, 0, "latest") == RECORDS
    batches = read_batches(own_broker.partition_directory(topic, 0))
    assert len({batch.producer_id for batch in batches}) == 1
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]
