"""What readers at either isolation level find."""

from __future__ import annotations

import contextlib

from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.compat.clients.model import TIMEOUT_SECONDS
from tests.peers.process import ServerProcess


def seen(broker: ServerProcess, topic: str, isolation: str) -> list[str]:
    """Every record that a reader at this level finds now."""
    settings = {"group.id": "never-joined", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    levels = {"isolation.level": isolation, "enable.partition.eof": True}
    reader = Consumer({"bootstrap.servers": broker.bootstrap, **settings, **levels})
    values: list[str] = []
    with contextlib.closing(reader):
        reader.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = reader.poll(TIMEOUT_SECONDS)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return values
            values.append((message.value() or b"").decode())
