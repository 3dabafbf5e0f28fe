"""confluent-kafka (librdkafka)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Delivered
from confluent_kafka.admin import AdminClient as LibraryAdmin
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic
from tests.compat.clients.model import (
    TIMEOUT_SECONDS,
    Acks,
    AdminClient,
    Cluster,
    Codec,
    Message,
    Refused,
    Stored,
    When,
)


def _refused(error: KafkaError) -> Refused:
    return Refused(error.code(), error.str())


def _answer(futures: Mapping[Any, Any]) -> Any:
    """The one answer in a map of futures."""
    (future,) = futures.values()
    return _call(lambda: future.result(TIMEOUT_SECONDS))


def _call(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except KafkaException as problem:
        raise _refused(problem.args[0]) from problem


class ConfluentClient(AdminClient):
    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = LibraryAdmin({"bootstrap.servers": bootstrap})

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replication: int = 1
    ) -> None:
        new_topic = NewTopic(topic, partitions, replication, config=dict(configs or {}))
        _answer(self._admin.create_topics([new_topic]))

    def produce(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Message],
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
                "message.timeout.ms": int(TIMEOUT_SECONDS * 1000),
            }
        )
        offsets: list[int] = []
        problems: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Delivered) -> None:
            if error is not None:
                problems.append(error)
            else:
                offsets.append(message.offset() or 0)

        for message in messages:
            self._send(producer, topic, partition, message, delivered)
        left = producer.flush(TIMEOUT_SECONDS)
        if problems:
            raise _refused(problems[0])
        if left:
            raise TimeoutError(f"{left} of {len(messages)} records were not acknowledged in {TIMEOUT_SECONDS} s")
        return offsets

    @staticmethod
    def _send(
        producer: Producer,
        topic: str,
        partition: int,
        message: Message,
        delivered: Callable[[KafkaError | None, Delivered], None],
    ) -> None:
        while True:
            try:
                producer.produce(
                    topic,
                    value=message.value,
                    key=message.key,
                    partition=partition,
                    headers=list(message.headers),
                    timestamp=message.timestamp_ms or 0,
                    on_delivery=delivered,
                )
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Stored]:
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, partition, start)])
            records: list[Stored] = []
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while len(records) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(records)} of {count} records came in {TIMEOUT_SECONDS} s")
                records += map(self._stored, consumer.consume(min(10_000, count - len(records)), 0.2))
            return records
        finally:
            consumer.close()

    @staticmethod
    def _stored(message: Delivered) -> Stored:
        error = message.error()
        if error is not None:
            raise _refused(error)
        offset = message.offset()
        assert offset is not None
        key: Any = message.key()
        value: Any = message.value()
        headers: Any = message.headers() or ()
        return Stored(offset, message.timestamp()[1], key, value, tuple(headers))

    def offset_at(self, topic: str, partition: int, when: When) -> int | None:
        consumer = self._consumer()
        try:
            if isinstance(when, int):
                asked = [TopicPartition(topic, partition, when)]
                found = _call(lambda: consumer.offsets_for_times(asked, timeout=TIMEOUT_SECONDS))[0].offset
                return found if found >= 0 else None
            low, high = _call(
                lambda: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_SECONDS)
            )
            return int(low if when == "earliest" else high)
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "never-joined",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )

    def delete_topic(self, topic: str) -> None:
        _answer(self._admin.delete_topics([topic]))

    def create_partitions(self, topic: str, total: int) -> None:
        _answer(self._admin.create_partitions([NewPartitions(topic, total)]))

    def partition_count(self, topic: str) -> int | None:
        found = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics.get(topic)
        return None if found is None or found.error is not None else len(found.partitions)

    def topic_configs(self, topic: str) -> dict[str, str | None]:
        entries = _answer(self._admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
        return {name: entry.value for name, entry in entries.items()}

    def describe_cluster(self) -> Cluster:
        found: Any = self._admin.describe_cluster().result(TIMEOUT_SECONDS)
        nodes = {node.id: f"{node.host}:{node.port}" for node in found.nodes}
        return Cluster(found.controller.id, nodes, found.cluster_id)
