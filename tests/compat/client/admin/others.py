"""What other clients say of the same cluster."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka import admin as confluent_admin

TIMEOUT_SECONDS = 60
LOOKS = 1500

with warnings.catch_warnings():
    # The library reads its schemas, when it is imported, through a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient

# Most of what the module offers is neither exported nor typed.
library: Any = confluent_admin

Partition = tuple[int, int, list[int], list[int]]


class Confluent:
    def __init__(self, bootstrap: str) -> None:
        self.admin = library.AdminClient({"bootstrap.servers": bootstrap})

    def partitions(self, topic: str) -> list[Partition]:
        (future,) = self.admin.describe_topics(TopicCollection([topic])).values()
        return [
            (one.id, one.leader.id, [node.id for node in one.replicas], [node.id for node in one.isr])
            for one in future.result(TIMEOUT_SECONDS).partitions
        ]

    def configs(self, kind: str, name: str) -> dict[str, tuple[str | None, int, bool]]:
        """Value, source and whether it can be changed, by name."""
        resource = library.ConfigResource(kind, name)
        (future,) = self.admin.describe_configs([resource]).values()
        return {
            key: (entry.value, entry.source, bool(entry.is_read_only))
            for key, entry in future.result(TIMEOUT_SECONDS).items()
        }

    def offset(self, topic: str, partition: int, spec: Any) -> tuple[int, int]:
        (future,) = self.admin.list_offsets(
            {TopicPartition(topic, partition): spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED
        ).values()
        found = future.result(TIMEOUT_SECONDS)
        return found.offset, found.timestamp

    def group(self, group_id: str) -> dict[str, Any]:
        (future,) = self.admin.describe_consumer_groups([group_id]).values()
        found = future.result(TIMEOUT_SECONDS)
        return {
            "state": found.state.name,
            "assignor": found.partition_assignor,
            "coordinator": found.coordinator.id,
            "members": {
                member.member_id: [(one.topic, one.partition) for one in member.assignment.topic_partitions]
                for member in found.members
            },
        }

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """Without the metadata: confluent-kafka 2.16 shows bytes behind its end."""
        request = ConsumerGroupTopicPartitions(group_id)
        (future,) = self.admin.list_consumer_group_offsets([request]).values()
        return {(one.topic, one.partition): one.offset for one in future.result(TIMEOUT_SECONDS).topic_partitions}

    def cluster(self) -> tuple[str, list[tuple[int, str, int]]]:
        found = self.admin.describe_cluster().result(TIMEOUT_SECONDS)
        return found.cluster_id, sorted((node.id, node.host, node.port) for node in found.nodes)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again: a cluster may answer before all of it has heard."""
    for _ in range(LOOKS):
        if await holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to hold")


def names_by_kafka_python(bootstrap: str) -> list[str]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        return sorted(name for name in admin.list_topics() if not name.startswith("__"))
    finally:
        admin.close()
