"""The questions every client is asked. Each `test_<client>.py` answers them with its adapter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest
from tests.compat.clients.model import (
    CODECS,
    CREATE_TIME_MS,
    TIMEOUT_SECONDS,
    Acks,
    AdminClient,
    Client,
    Codec,
    Message,
    Refused,
    Stored,
)
from tests.compat.clients.segments import read_batches
from tests.peers.process import ServerProcess

UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40


def eventually(question: Callable[[], object], expected: object) -> None:
    """Ask until the answer is the expected one: metadata reaches a client a little after the call that changed it."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (answer := question()) != expected:
        assert time.monotonic() < deadline, f"expected {expected!r}, still {answer!r} after {TIMEOUT_SECONDS} s"
        time.sleep(0.02)


def assert_stored(records: list[Stored], messages: list[Message], first_offset: int = 0) -> None:
    """The records are these messages, in this order, at consecutive offsets, nothing lost on the way."""
    assert [record.offset for record in records] == list(range(first_offset, first_offset + len(messages)))
    assert [(r.key, r.value, r.headers) for r in records] == [(m.key, m.value, m.headers) for m in messages]
    given = [(r.timestamp_ms, m.timestamp_ms) for r, m in zip(records, messages, strict=True) if m.timestamp_ms]
    assert [came for came, _ in given] == [sent for _, sent in given]


@pytest.mark.timeout(120)
class ClientContract:
    """Producing and consuming."""

    adapter: ClassVar[type[Client]]

    @pytest.fixture(scope="class")
    @classmethod
    def client(cls, broker: ServerProcess) -> Iterator[Client]:
        client = cls.adapter(broker.bootstrap)
        yield client
        client.close()

    @pytest.mark.parametrize("codec", CODECS)
    def test_codec_is_stored_as_sent(self, client: Client, broker: ServerProcess, topic: str, codec: Codec) -> None:
        client.create_topic(topic)
        messages = [Message(b"%04d " % number * 100, key=b"%d" % number) for number in range(200)]
        client.produce(topic, 0, messages, codec=codec)
        assert_stored(client.consume(topic, 0, 0, len(messages)), messages)
        batches = read_batches(broker.partition_directory(topic, 0))
        assert {batch.codec for batch in batches} == {codec}
        assert all(batch.crc_matches for batch in batches)
        assert sum(batch.record_count for batch in batches) == len(messages)

    def test_records_come_back_whole(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        messages = list(client.rich_messages)
        before_ms = int(time.time() * 1000)
        offsets = client.produce(topic, 0, messages)
        if client.reports_offsets:
            assert offsets == list(range(len(messages)))
        records = client.consume(topic, 0, 0, len(messages))
        assert_stored(records, messages)
        now_ms = int(time.time() * 1000)
        stamped = [r.timestamp_ms for r, m in zip(records, messages, strict=True) if m.timestamp_ms is None]
        assert stamped
        assert all(before_ms <= timestamp <= now_ms for timestamp in stamped)

    def test_partitions_are_separate_logs(self, client: Client, topic: str) -> None:
        client.create_topic(topic, partitions=3)
        for partition in range(3):
            client.produce(topic, partition, [Message(b"%d-%d" % (partition, n)) for n in range(5 + partition)])
        for partition in range(3):
            expected = [Message(b"%d-%d" % (partition, n)) for n in range(5 + partition)]
            assert_stored(client.consume(topic, partition, 0, 5 + partition), expected)

    def test_reading_starts_anywhere(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        messages = [Message(b"value %d" % number) for number in range(500)]
        client.produce(topic, 0, messages, codec="gzip")
        for start in (1, 250, 499):
            assert_stored(client.consume(topic, 0, start, 500 - start), messages[start:], first_offset=start)

    def test_offset_out_of_range_falls_back(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        messages = [Message(b"a"), Message(b"b")]
        client.produce(topic, 0, messages)
        assert_stored(client.consume(topic, 0, 1_000_000, 2), messages)

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_acks(self, client: Client, topic: str, acks: Acks) -> None:
        client.create_topic(topic)
        messages = [Message(b"value %d" % number) for number in range(100)]
        offsets = client.produce(topic, 0, messages, acks=acks)
        if client.reports_offsets and acks != "0":
            assert offsets == list(range(100))
        assert_stored(client.consume(topic, 0, 0, 100), messages)

    @pytest.mark.parametrize("idempotent", [False, True])
    def test_idempotence(self, client: Client, broker: ServerProcess, topic: str, idempotent: bool) -> None:
        client.create_topic(topic)
        messages = [Message(b"value %d" % number) for number in range(1000)]
        client.produce(topic, 0, messages, idempotent=idempotent)
        assert_stored(client.consume(topic, 0, 0, 1000), messages)
        batches = read_batches(broker.partition_directory(topic, 0))
        if idempotent:
            assert len({batch.producer_id for batch in batches}) == 1
            assert batches[0].producer_id >= 0
            assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]
        else:
            assert {batch.producer_id for batch in batches} == {-1}

    def test_big_records(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        messages = [Message(bytes([65 + number]) * 900_000, key=b"big") for number in range(4)]
        client.produce(topic, 0, messages)
        assert_stored(client.consume(topic, 0, 0, 4), messages)

    def test_record_above_the_topics_limit_is_refused(self, client: Client, topic: str) -> None:
        client.create_topic(topic, configs={"max.message.bytes": "1000"})
        with pytest.raises(Refused) as refusal:
            client.produce(topic, 0, [Message(b"x" * 5000)])
        assert refusal.value.code == MESSAGE_TOO_LARGE
        client.produce(topic, 0, [Message(b"small")])
        assert_stored(client.consume(topic, 0, 0, 1), [Message(b"small")])

    def test_many_small_records(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        count = 100_000
        offsets = client.produce(topic, 0, [Message(b"%06d" % n) for n in range(count)], codec="lz4", idempotent=True)
        if client.reports_offsets:
            assert offsets == list(range(count))
        records = client.consume(topic, 0, 0, count)
        assert [record.offset for record in records] == list(range(count))
        assert [record.value for record in records] == [b"%06d" % number for number in range(count)]

    def test_offsets_by_time(self, client: Client, topic: str) -> None:
        client.create_topic(topic)
        assert client.offset_at(topic, 0, "earliest") == 0
        assert client.offset_at(topic, 0, "latest") == 0
        for number in range(3):
            client.produce(topic, 0, [Message(b"value", timestamp_ms=CREATE_TIME_MS + number * 1000)])
        assert client.offset_at(topic, 0, "earliest") == 0
        assert client.offset_at(topic, 0, "latest") == 3
        stamps = [record.timestamp_ms for record in client.consume(topic, 0, 0, 3)]
        for target in [*stamps, stamps[0] - 500, stamps[-1] - 1]:
            expected = next(offset for offset, timestamp in enumerate(stamps) if timestamp >= target)
            assert client.offset_at(topic, 0, target) == expected
        assert client.offset_at(topic, 0, stamps[-1] + 3_600_000) is None

    def test_waiting_reader_gets_new_records(self, client: Client, topic: str) -> None:
        """The reader asks at the end of the log; the broker holds the fetch until something comes."""
        client.create_topic(topic)
        client.produce(topic, 0, [Message(b"first")])
        reading = threading.Event()

        def read() -> list[Stored]:
            reading.set()
            return client.consume(topic, 0, 0, 2)

        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(read)
            assert reading.wait(TIMEOUT_SECONDS)
            other = type(client)(client.bootstrap)
            other.produce(topic, 0, [Message(b"second")])
            assert_stored(reader.result(TIMEOUT_SECONDS * 2), [Message(b"first"), Message(b"second")])
            other.close()

    def test_topic_is_created_by_using_it(self, client: Client, topic: str) -> None:
        client.produce(topic, 0, [Message(b"out of nothing")])
        assert_stored(client.consume(topic, 0, 0, 1), [Message(b"out of nothing")])


class AdminContract(ClientContract):
    """Producing, consuming and the admin calls."""

    adapter: ClassVar[type[AdminClient]]

    def test_topic_configs(self, client: AdminClient, topic: str) -> None:
        given = {"retention.ms": "86400000", "segment.bytes": "2000000", "compression.type": "producer"}
        client.create_topic(topic, partitions=2, configs=given)
        eventually(lambda: client.partition_count(topic), 2)
        configs = client.topic_configs(topic)
        assert {name: configs[name] for name in given} == given
        assert configs["cleanup.policy"] == "delete"
        assert configs["max.message.bytes"] == "1048588"
        assert configs["min.insync.replicas"] == "1"

    def test_deleted_topic_is_gone(self, client: AdminClient, topic: str) -> None:
        client.create_topic(topic)
        client.produce(topic, 0, [Message(b"to be deleted")])
        client.delete_topic(topic)
        eventually(lambda: client.partition_count(topic), None)
        client.create_topic(topic)
        client.produce(topic, 0, [Message(b"a new topic")])
        assert_stored(client.consume(topic, 0, 0, 1), [Message(b"a new topic")])

    def test_partitions_are_added(self, client: AdminClient, topic: str) -> None:
        client.create_topic(topic)
        client.produce(topic, 0, [Message(b"before")])
        client.create_partitions(topic, 3)
        eventually(lambda: client.partition_count(topic), 3)
        client.produce(topic, 2, [Message(b"in the new one")])
        assert_stored(client.consume(topic, 2, 0, 1), [Message(b"in the new one")])
        assert_stored(client.consume(topic, 0, 0, 1), [Message(b"before")])
        with pytest.raises(Refused) as refusal:
            client.create_partitions(topic, 2)
        assert refusal.value.code == INVALID_PARTITIONS

    def test_cluster(self, client: AdminClient) -> None:
        cluster = client.describe_cluster()
        ((node_id, address),) = cluster.nodes.items()
        assert address in (client.bootstrap, client.bootstrap.replace("127.0.0.1", "localhost"))
        assert cluster.controller_id == node_id
        assert cluster.cluster_id

    def test_existing_topic_is_refused(self, client: AdminClient, topic: str) -> None:
        client.create_topic(topic)
        with pytest.raises(Refused) as refusal:
            client.create_topic(topic)
        assert refusal.value.code == TOPIC_ALREADY_EXISTS

    def test_bad_topics_are_refused(self, client: AdminClient, topic: str) -> None:
        with pytest.raises(Refused) as refusal:
            client.create_topic(f"{topic} with spaces")
        assert refusal.value.code == INVALID_TOPIC_EXCEPTION
        with pytest.raises(Refused) as refusal:
            client.create_topic(topic, replication=3)
        assert refusal.value.code == INVALID_REPLICATION_FACTOR
        with pytest.raises(Refused) as refusal:
            client.create_topic(topic, configs={"retention.ms": "soon"})
        assert refusal.value.code == INVALID_CONFIG
        assert client.partition_count(topic) is None

    def test_deleting_what_is_not_there_is_refused(self, client: AdminClient, topic: str) -> None:
        with pytest.raises(Refused) as refusal:
            client.delete_topic(topic)
        assert refusal.value.code == UNKNOWN_TOPIC_OR_PARTITION
