"""One plain connection that speaks Kafka's protocol, and the bytes that are sent over it.

Requests go out in fixed versions that both brokers serve. Whatever a broker refuses is raised here: a measurement never
counts an error as work.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

LOOPBACK = "127.0.0.1"
CLIENT_ID = "bench"

PRODUCE_VERSION = 11
FETCH_VERSION = 16
LIST_OFFSETS_VERSION = 7
METADATA_VERSION = 12
CREATE_TOPICS_VERSION = 7
DELETE_TOPICS_VERSION = 6
ALTER_CONFIGS_VERSION = 1
FIND_COORDINATOR_VERSION = 4
GROUP_COORDINATOR, TRANSACTION_COORDINATOR = 0, 1

_LATEST = -1
_NO_SESSION_EPOCH = -1
_TOPIC_RESOURCE = 2
_SET = 0
_TIMEOUT_MS = 30_000
_NOT_YET = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class RefusedError(RuntimeError):
    """The broker answered with an error, or with bytes that were not expected."""


class Connection:
    """One request at a time, each one answered before the next."""

    def __init__(self, port: int, timeout_seconds: float = 30.0) -> None:
        self.socket = socket.create_connection((LOOPBACK, port), timeout=timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, frame: bytes) -> bytes:
        """Send a whole request, answer the whole response with its length prefix."""
        self.socket.sendall(frame)
        return self.receive()

    def receive(self) -> bytes:
        """The next whole response."""
        prefix = self._receive(4)
        return prefix + self._receive(struct.unpack(">i", prefix)[0])

    def call(self, request: Any, version: int) -> Any:
        frame = self.exchange(encode_request(request, version, 1, CLIENT_ID))
        return decode_response(type(request), version, memoryview(frame)[4:])[1]

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, count: int) -> bytes:
        received = bytearray(count)
        view = memoryview(received)
        while view:
            size = self.socket.recv_into(view)
            if size == 0:
                raise RefusedError(f"expected {count} bytes, the connection closed after {count - len(view)}")
            view = view[size:]
        return bytes(received)


def produce_request(topic: str, partition: int, batch: bytes, correlation_id: int) -> bytes:
    """A whole Produce request with its length prefix: acks=1, one batch."""
    partition_data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=1,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[partition_data])],
    )
    return encode_request(request, PRODUCE_VERSION, correlation_id, CLIENT_ID)


def fetch_request(topic_id: bytes, partition: int, offset: int, max_bytes: int, correlation_id: int) -> bytes:
    """A whole Fetch request without a session, as big as `max_bytes`, that never waits."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=_NO_SESSION_EPOCH,
        topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])],
    )
    return encode_request(request, FETCH_VERSION, correlation_id, CLIENT_ID)


def produce_answer(frame: bytes) -> PartitionProduceResponse:
    """What a whole Produce response says about its one partition."""
    _, response = decode_response(ProduceRequest, PRODUCE_VERSION, memoryview(frame)[4:])
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0]


def fetch_answer(frame: bytes) -> PartitionData:
    """What a whole Fetch response says about its one partition; an error of the whole request is raised."""
    _, response = decode_response(FetchRequest, FETCH_VERSION, memoryview(frame)[4:])
    assert isinstance(response, FetchResponse)
    check(response.error_code, "fetching")
    return response.responses[0].partitions[0]


def check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise RefusedError(f"{what}: expected no error, the broker answered {ErrorCode(code).name}")


def create_topic(
    connection: Connection, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> bytes:
    """Create it and wait until every partition answers for its end; answers the topic's id."""
    settings = [CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()]
    creatable = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=settings)
    request = CreateTopicsRequest(topics=[creatable], timeout_ms=_TIMEOUT_MS)
    (created,) = connection.call(request, CREATE_TOPICS_VERSION).topics
    check(created.error_code, f"creating topic {topic}")
    end_offsets(connection, topic, range(partitions), wait_seconds=60.0)
    return topic_id(connection, topic)


def topic_id(connection: Connection, topic: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (described,) = connection.call(request, METADATA_VERSION).topics
    check(described.error_code, f"describing topic {topic}")
    return bytes(described.topic_id)


def delete_topic(connection: Connection, topic: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=_TIMEOUT_MS)
    (deleted,) = connection.call(request, DELETE_TOPICS_VERSION).responses
    check(deleted.error_code, f"deleting topic {topic}")


def alter_topic(connection: Connection, topic: str, configs: Mapping[str, str]) -> None:
    """Set configs of a topic; both brokers apply them shortly after the answer."""
    changes = [AlterableConfig(name=name, config_operation=_SET, value=value) for name, value in configs.items()]
    resource = AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (altered,) = connection.call(request, ALTER_CONFIGS_VERSION).responses
    check(altered.error_code, f"configuring topic {topic}")


def wait_for_coordinator(connection: Connection, kind: int, wait_seconds: float = 60.0) -> None:
    """Have the topic of a coordinator created and loaded: the first who asks is told to come back."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["first"])
    deadline = time.monotonic() + wait_seconds
    while True:
        (found,) = connection.call(request, FIND_COORDINATOR_VERSION).coordinators
        if found.error_code not in _NOT_YET or time.monotonic() > deadline:
            check(found.error_code, "finding a coordinator")
            return
        time.sleep(0.02)


def end_offset(connection: Connection, topic: str, partition: int, wait_seconds: float = 0.0) -> int:
    """The log end offset; a partition without a leader is asked again for `wait_seconds`."""
    return end_offsets(connection, topic, [partition], wait_seconds)[partition]


def end_offsets(
    connection: Connection, topic: str, partitions: Iterable[int], wait_seconds: float = 0.0
) -> dict[int, int]:
    """The log end offsets of many partitions, asked for in one request."""
    wanted = [ListOffsetsPartition(partition_index=partition, timestamp=_LATEST) for partition in partitions]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    deadline = time.monotonic() + wait_seconds
    while True:
        answers = connection.call(request, LIST_OFFSETS_VERSION).topics[0].partitions
        if not any(answer.error_code in _NOT_YET for answer in answers) or time.monotonic() > deadline:
            for answer in answers:
                check(answer.error_code, f"end offset of {topic}-{answer.partition_index}")
            return {answer.partition_index: int(answer.offset) for answer in answers}
        time.sleep(0.01)
