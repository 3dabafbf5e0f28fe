"""kafka-python."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.compat.clients.model import (
    RICH_MESSAGES,
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

with warnings.catch_warnings():
    # The library reads its schemas, when it is imported, through a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import KafkaError


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as problem:
        raise Refused(getattr(problem, "errno", -1), str(problem)) from problem


def _without_null_headers(message: Message) -> Message:
    return message._replace(headers=tuple(header for header in message.headers if header[1] is not None))


class KafkaPythonClient(AdminClient):
    """The library refuses to send a header without a value."""

    name = "kafka-python"
    rich_messages = tuple(map(_without_null_headers, RICH_MESSAGES))

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def close(self) -> None:
        self._admin.close()

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replication: int = 1
    ) -> None:
        options = {"num_partitions": partitions, "replication_factor": replication, "configs": dict(configs or {})}
        with _refusals():
            self._admin.create_topics({topic: options})

    def produce(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Message],
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        with contextlib.closing(producer), _refusals():
            sent = [
                producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    partition=partition,
                    timestamp_ms=message.timestamp_ms,
                    headers=list(message.headers),
                )
                for message in messages
            ]
            producer.flush(timeout=TIMEOUT_SECONDS)
            return [future.get(timeout=TIMEOUT_SECONDS).offset for future in sent]

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Stored]:
        assigned = TopicPartition(topic, partition)
        records: list[Stored] = []
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with contextlib.closing(self._consumer()) as consumer, _refusals():
            consumer.assign([assigned])
            consumer.seek(assigned, start)
            while len(records) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(records)} of {count} records came in {TIMEOUT_SECONDS} s")
                came = consumer.poll(timeout_ms=500, max_records=count - len(records))
                for record in came.get(assigned, ()):
                    headers = tuple(record.headers)
                    records.append(Stored(record.offset, record.timestamp, record.key, record.value, headers))
        return records

    def offset_at(self, topic: str, partition: int, when: When) -> int | None:
        asked = TopicPartition(topic, partition)
        with contextlib.closing(self._consumer()) as consumer, _refusals():
            if isinstance(when, int):
                found = consumer.offsets_for_times({asked: when})[asked]
                return None if found is None else int(found.offset)
            lookup = consumer.beginning_offsets if when == "earliest" else consumer.end_offsets
            return int(lookup([asked])[asked])

    def _consumer(self) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
        )

    def delete_topic(self, topic: str) -> None:
        with _refusals():
            self._admin.delete_topics([topic])

    def create_partitions(self, topic: str, total: int) -> None:
        with _refusals():
            self._admin.create_partitions({topic: total})

    def partition_count(self, topic: str) -> int | None:
        topics = self._admin.describe_topics()
        return next((len(found["partitions"]) for found in topics if found["name"] == topic), None)

    def topic_configs(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        with _refusals():
            found = self._admin.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in _only(found, topic).items()}

    def describe_cluster(self) -> Cluster:
        with _refusals():
            found = self._admin.describe_cluster()
        nodes = {node["broker_id"]: f"{node['host']}:{node['port']}" for node in found["brokers"]}
        return Cluster(found["controller_id"], nodes, found["cluster_id"])


def _only(found: Any, topic: str) -> Any:
    """The entries of the one topic asked for; the library groups what it answers by type and name."""
    return found[0] if isinstance(found, list) else found["topic"][topic]
