"""Settings of a topic that change while it is in use: the next request meets the new ones."""

import time
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.config_questions import (
    ALL_BROKERS,
    BROKER,
    DELETE,
    SET,
    THIS_BROKER,
    TOPIC,
    change,
    eventually,
)
from tests.unit.broker.api.questions import batch, create_topic, fetch, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.records import Codec, read_header

OK = ErrorCode.NONE


def code(client: WireClient, topic: str, records: bytes) -> ErrorCode:
    return ErrorCode(produce(client, topic, records).error_code)


def set_(client: WireClient, topic: str, key: str, value: str) -> None:
    assert change(client, TOPIC, topic, (key, SET, value)) == OK


def test_the_largest_message(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    large = batch(b"x" * 5000)
    assert code(client, topic, large) == OK
    set_(client, topic, "max.message.bytes", "1000")
    eventually(lambda: code(client, topic, large), ErrorCode.MESSAGE_TOO_LARGE)
    assert change(client, TOPIC, topic, ("max.message.bytes", DELETE, None)) == OK
    eventually(lambda: code(client, topic, large), OK)


def test_who_gives_the_time(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert produce(client, topic, batch(b"a")).log_append_time_ms == -1
    set_(client, topic, "message.timestamp.type", "LogAppendTime")
    eventually(lambda: produce(client, topic, batch(b"a")).log_append_time_ms > 0, True)


def test_which_times_are_taken(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    old = batch(b"a", timestamp=1000)
    assert code(client, topic, old) == OK
    set_(client, topic, "message.timestamp.before.max.ms", "1000")
    eventually(lambda: code(client, topic, old), ErrorCode.INVALID_TIMESTAMP)


def test_the_codec_on_disk(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    set_(client, topic, "compression.type", "gzip")

    def codec_of_the_next() -> Codec:
        offset = produce(client, topic, batch(b"a" * 1000)).base_offset
        return read_header(bytes(fetch(client, topic, offset).records or b"")).compression

    eventually(codec_of_the_next, Codec.GZIP)
    set_(client, topic, "compression.type", "uncompressed")
    eventually(codec_of_the_next, Codec.NONE)


def test_records_without_a_key_on_a_compacted_topic(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    keyless = batch(b"a", key=None)
    assert code(client, topic, keyless) == OK
    set_(client, topic, "cleanup.policy", "compact")
    eventually(lambda: code(client, topic, keyless), ErrorCode.INVALID_RECORD)
    assert code(client, topic, batch(b"a")) == OK
    set_(client, topic, "cleanup.policy", "delete")
    eventually(lambda: code(client, topic, keyless), OK)


def test_more_replicas_in_sync_than_there_are(client: WireClient, topic: str) -> None:
    """Kafka asks for no more replicas than the partition has, so a single one stays enough."""
    create_topic(client, topic)
    set_(client, topic, "min.insync.replicas", "2")
    assert code(client, topic, batch(b"a")) == OK


def test_the_size_of_segments(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        create_topic(client, "topic")
        filled = batch(b"x" * 600_000, timestamp=int(time.time() * 1000))
        for _ in range(4):
            assert code(client, "topic", filled) == OK
        assert len(list(tmp_path.glob("topic-0/*.log"))) == 1
        set_(client, "topic", "segment.bytes", "1048576")
        for _ in range(4):
            assert code(client, "topic", filled) == OK
        assert len(list(tmp_path.glob("topic-0/*.log"))) == 5


def test_every_setting_reaches_the_open_logs(tmp_path: Path) -> None:
    changes = {
        "retention.ms": "5000",
        "retention.bytes": "6000",
        "segment.ms": "7000",
        "flush.ms": "8000",
        "flush.messages": "9",
        "min.insync.replicas": "2",
        "file.delete.delay.ms": "10",
        "cleanup.policy": "compact,delete",
        "ottla.flush.before.ack": "true",
    }
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        create_topic(client, "topic", partitions=2)
        assert change(client, TOPIC, "topic", *((key, SET, value) for key, value in changes.items())) == OK
        for index in range(2):
            config = running.broker.replicas.partition("topic", index).log.config
            assert (config.retention_ms, config.retention_bytes, config.segment_ms) == (5000, 6000, 7000)
            assert (config.flush_ms, config.flush_messages, config.min_insync_replicas) == (8000, 9, 2)
            assert (config.file_delete_delay_ms, config.cleanup_policy) == (10, ("compact", "delete"))
            assert config.ottla_flush_before_ack


@pytest.mark.parametrize("name", [THIS_BROKER, ALL_BROKERS])
def test_new_defaults_reach_the_open_logs(tmp_path: Path, name: str) -> None:
    with BrokerThread(tmp_path, {"log.retention.hours": "2"}) as running, WireClient(running.port) as client:
        create_topic(client, "plain")
        create_topic(client, "own", configs={"retention.ms": "77"})

        def retention_ms() -> tuple[int, int]:
            logs = [running.broker.replicas.partition(topic, 0).log for topic in ("plain", "own")]
            return logs[0].config.retention_ms, logs[1].config.retention_ms

        assert retention_ms() == (7_200_000, 77)
        assert change(client, BROKER, name, ("log.retention.ms", SET, "5000")) == OK
        assert retention_ms() == (5000, 77)
        assert change(client, BROKER, name, ("log.retention.ms", DELETE, None)) == OK
        assert retention_ms() == (7_200_000, 77)


def test_records_that_wait_for_no_flush_become_visible_when_flushing_begins(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        create_topic(client, "topic")
        assert code(client, "topic", batch(b"a")) == OK
        set_(client, "topic", "flush.messages", "1")
        log = running.broker.replicas.partition("topic", 0).log
        assert log.recovery_point == log.log_end_offset == log.high_watermark == 1
        assert code(client, "topic", batch(b"b")) == OK
        assert log.recovery_point == 2
