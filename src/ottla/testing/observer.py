"""What a test wants to see and do on its broker without a client of its own: topics made, records written and read.

It talks the protocol on a connection for each call, under a client id that meets no scripted faults.
"""

import socket
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records import Buffer, Record, build_batch, read_records, scan_headers
from ottla.testing.faults import OWN_CLIENT_ID

Answer = TypeVar("Answer", bound=Response)
Text = str | bytes | None
Headers = Mapping[str, Text] | Iterable[tuple[str, Text]]

PATIENCE_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 0.01
LONGEST_POLL_MS = 1000
EARLIEST, ACKS_ALL = -2, -1
FETCH_BYTES = 1 << 26
# The last versions that name topics instead of giving their ids.
PRODUCE_BY_NAME, FETCH_BY_NAME, LIST_OFFSETS_VERSION, METADATA_VERSION, CREATE_TOPICS_VERSION = 12, 12, 6, 9, 6


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it is in the log; its timestamp is in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Observer:
    """One blocking connection."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._correlation_id = 0

    def __enter__(self) -> "Observer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, request: Request, answer: type[Answer], version: int) -> Answer:
        self._correlation_id += 1
        self._socket.sendall(encode_request(request, version, self._correlation_id, OWN_CLIENT_ID))
        (size,) = struct.unpack(">i", self._read(4))
        _, response = decode_response(type(request), version, self._read(size))
        assert isinstance(response, answer)
        return response

    def _read(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise ConnectionError("the broker closed the connection")
        return data

    # Topics

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()],
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, CREATE_TOPICS_VERSION).topics
        _check(result.error_code, result.error_message or name)

    def topics(self) -> dict[str, int]:
        """How many partitions each topic has."""
        found = self.ask(MetadataRequest(topics=None), MetadataResponse, METADATA_VERSION).topics
        return {topic.name or "": len(topic.partitions) for topic in found}

    def partition_count(self, topic: str, *, create: bool) -> int | None:
        """None for a topic that does not exist, and is not created either."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=create)
        (found,) = self.ask(request, MetadataResponse, METADATA_VERSION).topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        _check(found.error_code, topic)
        return len(found.partitions)

    # Records

    def produce(self, topic: str, partition: int, record: Record) -> StoredRecord:
        if self.partition_count(topic, create=True) is None:
            raise _unknown_topic(topic, self.topics())
        data = PartitionProduceData(index=partition, records=build_batch([record]))
        request = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=int(PATIENCE_SECONDS * 1000),
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        (answered,) = self.ask(request, ProduceResponse, PRODUCE_BY_NAME).responses
        (answer,) = answered.partition_responses
        _check(answer.error_code, answer.error_message or f"{topic}-{partition}")
        timestamp = record.timestamp if answer.log_append_time_ms < 0 else answer.log_append_time_ms
        return _stored(topic, partition, record, answer.base_offset, timestamp)

    def records(self, topic: str, partition: int | None, at_least: int, timeout_seconds: float) -> list[StoredRecord]:
        """All records by partition and offset; waits for `at_least` of them, or raises TimeoutError."""
        deadline = time.monotonic() + timeout_seconds
        count = self._wait_for_topic(topic, deadline if at_least else 0.0)
        if partition is not None and not 0 <= partition < count:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has {count} partitions, no {partition}")
        wanted = range(count) if partition is None else [partition]
        positions = {index: self._start_offset(topic, index, deadline) for index in wanted}
        found: list[StoredRecord] = []
        while True:
            left_ms = int((deadline - time.monotonic()) * 1000)
            wait_ms = min(max(left_ms, 0), LONGEST_POLL_MS) if len(found) < at_least else 0
            new, has_moved = self._fetch(topic, positions, wait_ms)
            found += new
            if has_moved:
                continue
            if len(found) >= at_least:
                return sorted(found, key=lambda record: (record.partition, record.offset))
            if left_ms <= 0:
                raise TimeoutError(
                    f"{at_least} records expected in {topic}, {len(found)} came within {timeout_seconds} s"
                )

    def _wait_for_topic(self, topic: str, deadline: float) -> int:
        while (count := self.partition_count(topic, create=False)) is None:
            if time.monotonic() >= deadline:
                raise _unknown_topic(topic, self.topics())
            time.sleep(LOOK_AGAIN_SECONDS)
        return count

    def _start_offset(self, topic: str, partition: int, deadline: float) -> int:
        """Waits for a topic that is known already and whose logs are still being made."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
        while True:
            (answered,) = self.ask(request, ListOffsetsResponse, LIST_OFFSETS_VERSION).topics
            (answer,) = answered.partitions
            if answer.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or time.monotonic() >= deadline:
                _check(answer.error_code, f"{topic}-{partition}")
                return answer.offset
            time.sleep(LOOK_AGAIN_SECONDS)

    def _fetch(self, topic: str, positions: dict[int, int], wait_ms: int) -> tuple[list[StoredRecord], bool]:
        """What comes next in each partition, control records left out, and whether there was anything at all.

        Moves the positions.
        """
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
            for index, offset in positions.items()
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic=topic, partitions=partitions)],
        )
        found: list[StoredRecord] = []
        has_moved = False
        for answered in self.ask(request, FetchResponse, FETCH_BY_NAME).responses:
            for answer in answered.partitions:
                index = answer.partition_index
                _check(answer.error_code, f"{topic}-{index}")
                start = positions[index]
                records, positions[index] = _decode(answer.records or b"", start)
                has_moved |= positions[index] != start
                found += [_stored(topic, index, record, record.offset, record.timestamp) for record in records]
        return found, has_moved


def _decode(data: Buffer, start: int) -> tuple[list[Record], int]:
    """The records of whole batches from `start` on that are no control records, and the offset behind them."""
    records: list[Record] = []
    view, position, behind = memoryview(data), 0, start
    for header in scan_headers(data, True):
        end = position + header.size_bytes
        if not header.is_control:
            records += [record for record in read_records(view[position:end]) if record.offset >= start]
        position, behind = end, header.last_offset + 1
    return records, behind


def new_record(value: Text, key: Text, headers: Headers, timestamp: int) -> Record:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Record(0, timestamp, _bytes(key), _bytes(value), [(name, _bytes(content)) for name, content in pairs])


def _stored(topic: str, partition: int, record: Record, offset: int, timestamp: int) -> StoredRecord:
    headers = tuple((name, None if value is None else bytes(value)) for name, value in record.headers)
    return StoredRecord(topic, partition, offset, timestamp, _bytes(record.key), _bytes(record.value), headers)


def _bytes(text: Text | Buffer) -> bytes | None:
    if text is None:
        return None
    return text.encode() if isinstance(text, str) else bytes(text)


def _check(code: int, message: str) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code), f"{ErrorCode(code).name}: {message}")


def _unknown_topic(topic: str, known: Iterable[str]) -> KafkaError:
    names = ", ".join(sorted(known)) or "none"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}; these exist: {names}")
