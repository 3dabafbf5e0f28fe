"""A wall clock that jumps, back and far forward, under a running broker. What waits goes by the other clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    batch,
    consume,
    create_topic,
    fetch,
    new_producer_id,
    produce,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.records import read_header
from ottla.testing.faulty_disk import FaultyDisk

HOUR_MS, YEAR_MS = 3_600_000, 31_536_000_000
JUMPS = (-HOUR_MS, -30 * YEAR_MS, HOUR_MS, 50 * YEAR_MS)
SHORT_WAIT_MS = 100
TIMEOUT_SECONDS = 60.0
START_MS = 1_700_000_000_000


class JumpingClock:
    """The machine's monotonic clock beside a wall clock that a test sets."""

    def __init__(self) -> None:
        self.wall_ms = START_MS

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return time.monotonic()


class Machine:
    def __init__(self, directory: Path) -> None:
        self.clock = JumpingClock()
        properties = {
            "log.retention.check.interval.ms": "10",
            "producer.id.expiration.check.interval.ms": "10",
            "log.retention.ms": str(24 * HOUR_MS),
        }
        self.thread = BrokerThread(directory, properties, disk=FaultyDisk(), broker_clock=self.clock).start()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.thread.stop()


@pytest.fixture
def client(machine: Machine) -> Iterator[WireClient]:
    with WireClient(machine.thread.port) as connected:
        yield connected


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_waits_end_and_records_are_taken(machine: Machine, client: WireClient, jump_ms: int) -> None:
    create_topic(client, "t", configs={"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})
    assert produce(client, "t", batch(b"before", timestamp=START_MS)).base_offset == 0
    machine.clock.wall_ms += jump_ms
    answer = fetch(client, "t", 1, max_wait_ms=SHORT_WAIT_MS)
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 1)
    assert produce(client, "t", batch(b"after", timestamp=START_MS)).base_offset == 1
    assert consume(client, "t", 2) == [b"before", b"after"]


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_flush_by_time_comes_all_the_same(machine: Machine, client: WireClient, jump_ms: int) -> None:
    create_topic(client, "t", configs={"flush.ms": "1", "retention.ms": "-1"})
    machine.clock.wall_ms += jump_ms
    assert produce(client, "t", batch(b"value", timestamp=machine.clock.wall_ms)).error_code == ErrorCode.NONE
    log = machine.thread.broker.logs.get("t", 0)
    assert log is not None
    until(lambda: log.recovery_point == 1)


def test_append_time_is_the_wall_clock_whichever_way_it_goes(machine: Machine, client: WireClient) -> None:
    create_topic(client, "t", configs={"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"})
    expected = []
    for number, jump_ms in enumerate((0, *JUMPS)):
        machine.clock.wall_ms += jump_ms
        expected.append(machine.clock.wall_ms)
        answer = produce(client, "t", batch(b"value", timestamp=5))
        assert (answer.base_offset, answer.log_append_time_ms) == (number, machine.clock.wall_ms)
    found = [
        read_header(bytes(fetch(client, "t", offset).records or b"")).max_timestamp for offset in range(len(expected))
    ]
    assert found == expected


def test_nothing_expires_by_a_clock_that_goes_back(machine: Machine, client: WireClient) -> None:
    create_topic(client, "t", configs={"segment.ms": "1"})
    producer_id = new_producer_id(client)
    for number in range(3):
        machine.clock.wall_ms += 1000
        records = batch(
            b"value",
            timestamp=machine.clock.wall_ms,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=number,
        )
        assert produce(client, "t", records).base_offset == number
    machine.clock.wall_ms -= YEAR_MS
    # What is old all the same shows that somebody has looked.
    create_topic(client, "older")
    ancient = batch(b"v", timestamp=START_MS - 9 * YEAR_MS, producer_id=77, producer_epoch=0, base_sequence=0)
    assert produce(client, "older", ancient).error_code == ErrorCode.NONE
    log, older = (machine.thread.broker.logs.get(topic, 0) for topic in ("t", "older"))
    assert log is not None
    assert older is not None
    until(lambda: older.log_start_offset == 1 and not older.producer_state.producers)
    assert (log.log_start_offset, len(log.segments)) == (0, 3)
    assert producer_id in log.producer_state.producers


def test_far_forward_retention_does_what_it_is_for_and_spares_the_young_ones_and_the_end(
    machine: Machine, client: WireClient
) -> None:
    """As with Kafka: what is old by the wall clock goes, also when that is wrong. Offsets go on where they were."""
    create_topic(client, "old", configs={"segment.ms": "1"})
    create_topic(client, "kept", configs={"retention.ms": "-1"})
    for number in range(3):
        assert produce(client, "old", batch(b"v", timestamp=START_MS + 1000 * number)).base_offset == number
        assert produce(client, "kept", batch(b"v", timestamp=START_MS)).base_offset == number
    machine.clock.wall_ms += 50 * YEAR_MS
    until(lambda: fetch(client, "old", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE)
    machine.clock.wall_ms -= 50 * YEAR_MS
    assert produce(client, "old", batch(b"v", timestamp=START_MS)).base_offset == 3
    assert consume(client, "kept", 3) == [b"v"] * 3
    assert fetch(client, "old", 3).error_code == ErrorCode.NONE
