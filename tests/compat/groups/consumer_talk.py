"""A talk with one broker about one consumer group, written down so that two brokers' can be compared.

Topics are written down by their names, and hashes by the topics they stand for: ids are each broker's own.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from tests.compat.groups.kept import FETCH_VERSION, fetch_request, plain
from tests.waiting import tries
from tests.wire_client import WireClient

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.groups.consumer.group import FIRST_EPOCH
from ottla.groups.consumer.metadata_hash import MetadataHashes
from ottla.groups.entries import GROUP_RECORD_TYPES
from ottla.ledger.entries import Entry, UnknownRecordType
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.records import read_records

GROUP_RESOURCE = 32
TOPICS = {"four": 4, "one": 1, "two": 2}
PATIENCE_SECONDS = 60.0
REBALANCE_MS = 60_000


def prepare(port: int) -> None:
    """Make the topics, and wait until the broker coordinates groups."""
    with WireClient(port) as client:
        topics = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in TOPICS.items()
        ]
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]), FindCoordinatorResponse, 4)
            answer = client.ask(ConsumerGroupDescribeRequest(group_ids=["any"]), ConsumerGroupDescribeResponse)
            if answer.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                return
            time.sleep(0.05)
        raise AssertionError(f"the broker on port {port} does not coordinate groups")


class ConsumerTalk:
    """`said` has all that was asked and answered, `assigned` what was last told to anybody."""

    assigned: dict[str, list[int]]

    def __init__(self, port: int, group: str) -> None:
        self.said: list[Any] = []
        self.group = group
        self.client = WireClient(port)
        self.look_at_topics()

    def look_at_topics(self) -> None:
        metadata = self.client.ask(MetadataRequest(topics=None), MetadataResponse)
        self._ids = {topic.name or "": topic.topic_id for topic in metadata.topics}
        self._names = {topic_id: name for name, topic_id in self._ids.items()}
        images = {
            topic.name or "": TopicImage(
                topic.name or "",
                topic.topic_id,
                tuple(PartitionImage(index, 1, 0, (1,), (1,), 0) for index in range(len(topic.partitions))),
            )
            for topic in metadata.topics
        }
        image = ClusterImage(topics=images)
        known = [*TOPICS, *(name for name in images if name.startswith(self.group))]
        self._hashes = {
            MetadataHashes().of(names, image): " ".join(sorted(names))
            for size in range(len(known) + 1)
            for names in itertools.combinations(known, size)
        }

    def create_topic(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while name not in self._ids and time.monotonic() < deadline:
            self.look_at_topics()

    def shorten_sessions(self, timeout_ms: int) -> None:
        """From the next heartbeats on; only this group, so that nobody else is put out on a slow machine."""
        config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value=str(timeout_ms))
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=self.group, configs=[config])
        answer = self.client.ask(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
        assert [one.error_code for one in answer.responses] == [ErrorCode.NONE]
        asked = DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name=self.group)
        for _ in tries():
            (found,) = self.client.ask(DescribeConfigsRequest(resources=[asked]), DescribeConfigsResponse).results
            if {one.value for one in found.configs if one.name == config.name} == {config.value}:
                return
        raise AssertionError(f"{config.name} stays as it was")

    def beat_until_news(self, member: str, epoch: int, owned: dict[str, list[int]]) -> None:
        """Only the answer that says something new is written down."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.beat(member, epoch, owned).assignment is None and time.monotonic() < deadline:
            self.said.pop()
            time.sleep(0.05)

    # Requests

    def beat(
        self, member: str, epoch: int, owned: dict[str, list[int]] | None = None, *, version: int = 1, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Epochs count from the first that a member gets, which is one more than that of an empty group."""
        since = epoch + FIRST_EPOCH if epoch > 0 else epoch
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=member, member_epoch=since)
        if owned is not None:
            request.topic_partitions = [
                TopicPartitions(topic_id=self._ids.get(name, bytes(15) + b"\x01"), partitions=indexes)
                for name, indexes in owned.items()
            ]
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self.client.ask(request, ConsumerGroupHeartbeatResponse, version)
        self.said.append((member, epoch, owned, fields, self._told(answer)))
        if answer.assignment is not None:
            self.assigned = self._partitions(answer.assignment.topic_partitions)
        return answer

    def _told(self, answer: ConsumerGroupHeartbeatResponse) -> Any:
        if answer.error_code:
            assert answer.error_message
            return ErrorCode(answer.error_code).name
        assigned = None if answer.assignment is None else self._partitions(answer.assignment.topic_partitions)
        return answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, assigned

    def _partitions(self, topics: list[Any]) -> dict[str, list[int]]:
        return {self._names[topic.topic_id]: sorted(topic.partitions) for topic in topics}

    def join(self, member: str, *names: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        given = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": list(names), **fields}
        return self.beat(member, 0, {}, **given)

    def describe(self, version: int = 1) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group, ""], include_authorized_operations=True)
        answer = self.client.ask(request, ConsumerGroupDescribeResponse, version)
        for group in sorted(answer.groups, key=lambda group: group.group_id):
            described = plain(group)
            described.pop("error_message")
            for member in described["members"]:
                for kind in ("assignment", "target_assignment"):
                    member[kind] = {
                        topic["topic_name"]: sorted(topic["partitions"]) for topic in member[kind]["topic_partitions"]
                    }
                member["subscribed_topic_names"].sort()
            described["members"].sort(key=lambda member: member["member_id"])
            self.said.append(described)

    @staticmethod
    def wait(milliseconds: int) -> None:
        """Let the brokers' clocks run."""
        time.sleep(milliseconds / 1000)

    # Records

    def write_down_records(self) -> None:
        """Records of one type in a row are written down in the order of their keys: Kafka's order is that of hashes."""
        kept: list[Any] = []
        answer = self.client.ask(fetch_request(), FetchResponse, FETCH_VERSION)
        for record in read_records(bytes(answer.responses[0].partitions[0].records or b"")):
            try:
                entry = GROUP_RECORD_TYPES.decode(record.key, record.value)
            except UnknownRecordType:
                continue
            if self._is_ours(entry):
                kept.append(self._kept(entry))
        for _, row in itertools.groupby(kept, key=lambda one: one[0]):
            self.said.extend(sorted(row, key=lambda one: repr(one[1])))

    def _is_ours(self, entry: Entry) -> bool:
        return getattr(entry.key, "group_id", None) == self.group

    def _kept(self, entry: Entry) -> Any:
        value = plain(entry.value)
        if isinstance(value, dict):
            for name in ("timestamp", "assignment_timestamp", "version", "current_state_timestamp"):
                if name in value:
                    value[name] = 0
            if "metadata_hash" in value:
                value["metadata_hash"] = self._hashes.get(value["metadata_hash"], "unknown topics")
            for name in ("topic_partitions", "assigned_partitions", "partitions_pending_revocation"):
                if name in value:
                    value[name] = {self._names[topic.pop("topic_id")]: _in_order(topic) for topic in value[name]}
        return entry.key.RECORD_TYPE, plain(entry.key), entry.version, value


def _in_order(topic: dict[str, Any]) -> dict[int, int | None]:
    epochs = topic.get("assignment_epochs") or [None] * len(topic["partitions"])
    return dict(sorted(zip(topic["partitions"], epochs, strict=True)))
