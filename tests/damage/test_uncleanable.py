"""A batch with a right CRC over no records in a log that is to be compacted: that log stays as it is, others go on."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.damage.garbage import garbage
from tests.unit.broker.api.config_questions import SET, TOPIC, change
from tests.unit.broker.api.questions import batch, create_topic, fetch, produce
from tests.unit.broker.exposition import Exposition
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.records import Codec, read_header
from ottla.testing import TestBroker

SMALL_SEGMENTS = {
    "internal.segment.bytes": "400",
    "min.cleanable.dirty.ratio": "0",
    "file.delete.delay.ms": "0",
    "retention.ms": "-1",
}
TIMEOUT_SECONDS = 60.0
ROUNDS = 20_000
RECORDS = 30
MANAGER = "kafka_log_logcleanermanager_"
CLEANER = "kafka_log_logcleaner_"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TestBroker]:
    properties = {
        "ottla.http.listeners": "http://127.0.0.1:0",
        "log.cleaner.backoff.ms": "1",
        "log.retention.check.interval.ms": "20",
    }
    with TestBroker(properties, directory=tmp_path) as running:
        yield running


def metric(broker: TestBroker, name: str, **labels: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", broker.broker.http_endpoints[0].port, timeout=TIMEOUT_SECONDS)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return Exposition(text).value(name, **labels)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(ROUNDS):
        if condition():
            return
    raise AssertionError("the condition never came true")


def first_offset(client: WireClient, topic: str, offset: int = 0) -> int:
    answer = fetch(client, topic, offset)
    assert answer.error_code == ErrorCode.NONE
    return read_header(bytes(answer.records or b"")).base_offset


def test_it_is_counted_and_others_are_compacted(broker: TestBroker, tmp_path: Path) -> None:
    directory = str(tmp_path)
    with WireClient(broker.port) as client:
        for topic in ("bad", "good"):
            create_topic(client, topic, configs=SMALL_SEGMENTS)
            for number in range(RECORDS):
                if topic == "bad" and number == 3:
                    assert produce(client, topic, garbage(Codec.LZ4)).base_offset == number
                else:
                    assert produce(client, topic, batch(b"%d" % number)).base_offset == number
        for topic in ("bad", "good"):
            assert change(client, TOPIC, topic, ("cleanup.policy", SET, "compact")) == ErrorCode.NONE
        until(lambda: first_offset(client, "good") > 0)
        until(lambda: metric(broker, MANAGER + "uncleanable_partitions_count", logDirectory=directory) == 1)
        assert metric(broker, MANAGER + "uncleanable_bytes", logDirectory=directory) > 0
        assert first_offset(client, "bad") == 0
        assert [first_offset(client, "bad", offset) for offset in range(RECORDS)] == list(range(RECORDS))
        # It goes on to be written, and others go on to be compacted.
        before = first_offset(client, "good")
        for number in range(RECORDS):
            assert produce(client, "bad", batch(b"more")).error_code == ErrorCode.NONE
            assert produce(client, "good", batch(b"%d" % number)).error_code == ErrorCode.NONE
        until(lambda: first_offset(client, "good") > before)
        # Readers see what was compacted a moment before it is counted.
        until(lambda: metric(broker, CLEANER + "max_clean_time_secs") > 0)
        assert 0 <= metric(broker, CLEANER + "cleaner_recopy_percent") < 100
        assert metric(broker, CLEANER + "max_buffer_utilization_percent") > 0
        assert metric(broker, CLEANER + "deadthreadcount") == 0
        assert metric(broker, MANAGER + "time_since_last_run_ms") >= 0
    broker.kill()
    broker.start()
    with WireClient(broker.port) as client:
        assert first_offset(client, "bad", 3) == 3
        assert first_offset(client, "bad", 4) == 4
        # As a topic that deletes, it lets go of old records whatever is in them.
        assert change(client, TOPIC, "bad", ("cleanup.policy", SET, "delete"), ("retention.ms", SET, "1")) == 0
        until(lambda: fetch(client, "bad", 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE)
