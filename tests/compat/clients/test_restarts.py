"""A broker of its own for every Python client: restarts under a producer, and compaction with quick settings."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CODECS, CREATE_TIME_MS, TIMEOUT_SECONDS, AdminClient, Message
from tests.compat.clients.segments import read_batches
from tests.conftest import start_broker
from tests.peers.process import ServerProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

pytestmark = pytest.mark.timeout(180)

CLIENTS: tuple[type[AdminClient], ...] = (ConfluentClient, AiokafkaClient, KafkaPythonClient)
Restart = Callable[[], None]


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


def _confluent(bootstrap: str, topic: str, values: list[bytes], restart: Restart) -> list[int]:
    offsets: list[int] = []

    def told(error: KafkaError | None, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0,
                         "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200})  # fmt: skip
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=0, on_delivery=told)
        if number == len(values) // 2:
            producer.flush(TIMEOUT_SECONDS)
            restart()
    assert producer.flush(TIMEOUT_SECONDS) == 0
    return offsets


def _aiokafka(bootstrap: str, topic: str, values: list[bytes], restart: Restart) -> list[int]:
    async def run() -> list[int]:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, retry_backoff_ms=50)
        async with producer:
            first = [await producer.send(topic, value, partition=0) for value in values[: len(values) // 2]]
            await producer.flush()
            rest = [await producer.send(topic, value, partition=0) for value in values[len(values) // 2 :]]
            await asyncio.to_thread(restart)
            return [(await sent).offset for sent in [*first, *rest]]

    with warnings.catch_warnings():
        # The library forgets to close the sockets of connections that were refused. Its log would keep them alive.
        warnings.simplefilter("ignore", ResourceWarning)
        logging.disable(logging.CRITICAL)
        try:
            return asyncio.run(run())
        finally:
            logging.disable(logging.NOTSET)
            gc.collect()


def _kafka_python(bootstrap: str, topic: str, values: list[bytes], restart: Restart) -> list[int]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, retry_backoff_ms=50)
    with contextlib.closing(producer):
        sent = []
        for number, value in enumerate(values):
            sent.append(producer.send(topic, value, partition=0))
            if number == len(values) // 2:
                producer.flush(timeout=TIMEOUT_SECONDS)
                restart()
        return [future.get(timeout=TIMEOUT_SECONDS).offset for future in sent]


@pytest.mark.parametrize(("produce", "killed"), [(_confluent, False), (_aiokafka, True), (_kafka_python, True)])
def test_an_idempotent_producer_outlives_a_restart(
    own_broker: ServerProcess, topic: str, produce: Callable[[str, str, list[bytes], Restart], list[int]], killed: bool
) -> None:
    """The broker goes away and comes back between two sends of one producer: nothing is lost, nothing comes twice."""
    ConfluentClient(own_broker.bootstrap).create_topic(topic)
    values = [b"%d" % number for number in range(200)]

    def restart() -> None:
        if killed:
            own_broker.kill()
        else:
            own_broker.stop()
        own_broker.start()

    offsets = produce(own_broker.bootstrap, topic, values, restart)
    assert sorted(offsets) == list(range(len(values)))
    records = ConfluentClient(own_broker.bootstrap).consume(topic, 0, 0, len(values))
    assert [record.value for record in records] == values
    batches = read_batches(own_broker.partition_directory(topic, 0))
    assert len({batch.producer_id for batch in batches}) == 1
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]
