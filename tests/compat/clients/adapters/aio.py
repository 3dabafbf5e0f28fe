"""aiokafka; each call runs a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError
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

_Result = TypeVar("_Result")


def _run(work: Awaitable[_Result]) -> _Result:
    async def limited() -> _Result:
        return await asyncio.wait_for(work, TIMEOUT_SECONDS)

    try:
        return asyncio.run(limited())
    except KafkaError as problem:
        raise Refused(getattr(problem, "errno", -1), str(problem)) from problem


def _check(code: int, message: str | None) -> None:
    if code:
        raise Refused(code, message or "")


class AiokafkaClient(AdminClient):
    name = "aiokafka"

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replication: int = 1
    ) -> None:
        async def create(admin: Any) -> None:
            new_topic = NewTopic(topic, partitions, replication, topic_configs=dict(configs or {}))
            for _, code, message in (await admin.create_topics([new_topic])).topic_errors:
                _check(code, message)

        self._with_admin(create)

    def produce(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Message],
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        async def send_all() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=20,
            )
            async with producer:
                sent = [
                    await producer.send(
                        topic,
                        value=message.value,
                        key=message.key,
                        partition=partition,
                        timestamp_ms=message.timestamp_ms,
                        headers=list(message.headers),
                    )
                    for message in messages
                ]
                metadata = await asyncio.gather(*sent)
            return [-1 if answer is None else answer.offset for answer in metadata]

        return _run(send_all())

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Stored]:
        async def read() -> list[Stored]:
            assigned = TopicPartition(topic, partition)
            records: list[Stored] = []
            consumer = self._consumer()
            async with consumer:
                consumer.assign([assigned])
                consumer.seek(assigned, start)
                while len(records) < count:
                    came = await consumer.getmany(timeout_ms=500, max_records=count - len(records))
                    for record in came.get(assigned, ()):
                        headers = tuple(record.headers)
                        records.append(Stored(record.offset, record.timestamp, record.key, record.value, headers))
            return records

        return _run(read())

    def offset_at(self, topic: str, partition: int, when: When) -> int | None:
        async def ask() -> int | None:
            asked = TopicPartition(topic, partition)
            async with self._consumer() as consumer:
                consumer.assign([asked])
                if isinstance(when, int):
                    found = (await consumer.offsets_for_times({asked: when}))[asked]
                    return None if found is None else int(found.offset)
                lookup = consumer.beginning_offsets if when == "earliest" else consumer.end_offsets
                return int((await lookup([asked]))[asked])

        return _run(ask())

    def _consumer(self) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
        )

    def _with_admin(self, work: Any) -> Any:
        async def use() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await admin.start()
            try:
                return await work(admin)
            finally:
                await admin.close()

        return _run(use())

    def delete_topic(self, topic: str) -> None:
        async def delete(admin: Any) -> None:
            for _, code in (await admin.delete_topics([topic])).topic_error_codes:
                _check(code, None)

        self._with_admin(delete)

    def create_partitions(self, topic: str, total: int) -> None:
        self._with_admin(lambda admin: admin.create_partitions({topic: NewPartitions(total)}))

    def partition_count(self, topic: str) -> int | None:
        topics = self._with_admin(lambda admin: admin.describe_topics())
        return next((len(found["partitions"]) for found in topics if found["topic"] == topic), None)

    def topic_configs(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._with_admin(lambda admin: admin.describe_configs([resource]))
        ((code, message, _, _, entries),) = answer.resources
        _check(code, message)
        return {entry[0]: entry[1] for entry in entries}

    def describe_cluster(self) -> Cluster:
        found = self._with_admin(lambda admin: admin.describe_cluster())
        nodes = {node["node_id"]: f"{node['host']}:{node['port']}" for node in found["brokers"]}
        return Cluster(found["controller_id"], nodes, found["cluster_id"])
