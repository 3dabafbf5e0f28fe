"""docs/TRANSACTIONS.md, row by row: each test is named after the row that it holds true."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import batch, create_topic, produce
from tests.unit.broker.transactional_client import TransactionalProducer, list_offset, read
from tests.waiting import tries
from tests.wire_client import WireClient

from ottla.ledger import partition_for
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.testing.faulty_disk import FaultyDisk
from ottla.testing.runtime import MovableClock
from ottla.transactions import Status

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "TRANSACTIONS.md"
GOOD, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
STALE, CONCURRENT = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.CONCURRENT_TRANSACTIONS
NAME = "shop"
VERSIONS = pytest.mark.parametrize("version", [1, 2])
PARTITIONS = 2
QUICK = {
    "transaction.state.log.num.partitions": str(PARTITIONS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "5",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "5",
}


class House:
    """A broker that can be killed, on a disk that can be full, with the topics A and B."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.disk = FaultyDisk()
        self.clock = MovableClock()
        self._life: BrokerThread | None = None

    def open(self) -> "House":
        self._life = BrokerThread(self.directory, QUICK, disk=self.disk, broker_clock=self.clock).start()
        self.client = WireClient(self._life.port)
        return self

    def kill(self) -> None:
        assert self._life is not None
        self.client.close()
        self._life.kill()
        self.disk.close_files()

    def reopen(self, *producers: TransactionalProducer) -> None:
        """After a kill, with room on the disk again; producers go on with what they know."""
        self.kill()
        self.disk.full.clear()
        self.open()
        for producer in producers:
            producer.client = self.client

    def close(self) -> None:
        if self._life is not None:
            self.client.close()
            self._life.close()

    def producer(self, version: int = 2, name: str = NAME, timeout_ms: int = 60_000) -> TransactionalProducer:
        return TransactionalProducer(self.client, name, version, timeout_ms).begin()

    def fill(self, *logs: str) -> None:
        self.disk.full.update(str(self.directory / log) for log in logs)

    def read(self, topic: str, *, committed: bool) -> list[bytes | None]:
        return read(self.client, topic, committed=committed)

    @property
    def seen(self) -> dict[str, tuple[bool, bool]]:
        """For A and B: whether the record is seen by who reads uncommitted, and committed."""
        return {
            topic: (self.read(topic, committed=False) == [b"x"], self.read(topic, committed=True) == [b"x"])
            for topic in ("A", "B")
        }

    def wait_for(self, status: Status | None) -> None:
        """Until the transactional id is in a state, or in none since it has expired."""
        request = DescribeTransactionsRequest(transactional_ids=[NAME])
        for _ in tries():
            (state,) = self.client.ask(request, DescribeTransactionsResponse).transaction_states
            if state.transaction_state == ("" if status is None else status.title):
                return
        raise AssertionError(f"{NAME} stays {state.transaction_state}")

    def wait_until_ended(self, *topics: str) -> None:
        """Until nothing is open in some topics: the last stable offset is the end."""
        for topic in topics:
            for _ in tries():
                stable = list_offset(self.client, topic, committed=True)
                if stable == list_offset(self.client, topic, committed=False):
                    break
            else:
                raise AssertionError(f"{topic} stays open")


OPEN = {"A": (True, False), "B": (True, False)}
COMMITTED = {"A": (True, True), "B": (True, True)}
ABORTED = OPEN
STATE_LOG = f"__transaction_state-{partition_for(NAME, PARTITIONS)}"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    opened = House(tmp_path).open()
    for topic in ("A", "B"):
        create_topic(opened.client, topic)
    try:
        yield opened
    finally:
        opened.disk.full.clear()
        opened.close()


def written(house: House, version: int = 2, timeout_ms: int = 60_000) -> TransactionalProducer:
    """A producer whose transaction has a record in A and one in B."""
    producer = house.producer(version, timeout_ms=timeout_ms)
    assert [producer.send(topic, b"x") for topic in ("A", "B")] == [GOOD, GOOD]
    assert house.seen == OPEN
    return producer


def test_every_row_has_its_test() -> None:
    rows = set(re.findall(r"^\| ([FR]\d+) \|", DOCUMENT.read_text(encoding="utf-8"), re.M))
    tested = {found.group(1).upper() for name in globals() if (found := re.match(r"test_([fr]\d+)_", name))}
    elsewhere = {"R6"}  # tests/unit/groups has the offsets of transactions.
    assert rows == tested | elsewhere


def test_f1_a_producer_that_wrote_nothing(house: House) -> None:
    first = house.producer()
    second = house.producer()
    assert (second.producer_id, second.epoch) == (first.producer_id, first.epoch + 1)
    assert house.seen == {"A": (False, False), "B": (False, False)}
    assert first.send("A", b"x") == STALE


@VERSIONS
def test_f2_a_producer_that_dies(house: House, version: int) -> None:
    written(house, version)
    house.producer(version)
    house.wait_until_ended("A", "B")
    assert house.seen == ABORTED


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_f3_a_producer_that_dies_after_its_answer(house: House, version: int, commit: bool) -> None:
    assert written(house, version).end(commit=commit) == GOOD
    house.wait_until_ended("A", "B")
    house.producer(version)
    assert house.seen == (COMMITTED if commit else ABORTED)


@VERSIONS
def test_f4_a_kill_before_the_decision(house: House, version: int) -> None:
    producer = written(house, version)
    house.reopen(producer)
    assert house.seen == OPEN
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A", "B")
    assert house.seen == COMMITTED


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_f5_a_kill_after_the_decision(house: House, version: int, commit: bool) -> None:
    producer = written(house, version)
    house.fill("A-0", "B-0")
    assert producer.end(commit=commit) == GOOD
    assert house.seen == OPEN
    house.reopen(producer)
    house.wait_until_ended("A", "B")
    assert house.seen == (COMMITTED if commit else ABORTED)
    producer.sequences = dict.fromkeys("AB", 1) if version == 1 else {}
    assert producer.send("A", b"next") == GOOD


@VERSIONS
def test_f6_a_kill_between_two_markers(house: House, version: int) -> None:
    producer = written(house, version)
    house.fill("B-0")
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A")
    assert house.seen == {"A": (True, True), "B": (True, False)}
    house.reopen(producer)
    house.wait_until_ended("A", "B")
    assert house.seen == COMMITTED


@VERSIONS
def test_f7_a_kill_before_the_last_record(house: House, version: int) -> None:
    producer = written(house, version)
    house.fill("B-0")
    assert producer.end(commit=True) == GOOD
    house.fill(STATE_LOG)
    house.disk.full.discard(str(house.directory / "B-0"))
    house.wait_until_ended("A", "B")
    assert house.seen == COMMITTED
    assert producer.end(commit=True, patience_seconds=0) == CONCURRENT
    house.reopen(producer)
    assert producer.begin().send("A", b"next") == GOOD
    assert house.read("A", committed=True) == [b"x"]
    assert producer.end(commit=True) == GOOD


@VERSIONS
def test_f8_a_kill_before_the_answer(house: House, version: int) -> None:
    producer = written(house, version)
    before = (producer.producer_id, producer.epoch)
    assert producer.end(commit=True) == GOOD
    after = (producer.producer_id, producer.epoch)
    producer.producer_id, producer.epoch = before
    house.reopen(producer)
    assert producer.end(commit=True) == GOOD
    assert (producer.producer_id, producer.epoch) == after
    house.wait_until_ended("A", "B")
    assert house.seen == COMMITTED


@VERSIONS
def test_f9_a_producer_that_is_silent(house: House, version: int) -> None:
    producer = written(house, version, timeout_ms=1000)
    house.clock.advance(1001)
    house.wait_until_ended("A", "B")
    assert house.seen == ABORTED
    assert producer.write("A", b"late") == STALE
    assert producer.end(commit=True) == (FENCED if version == 1 else ErrorCode.INVALID_TXN_STATE)
    assert house.read("A", committed=False) == [b"x"]


@VERSIONS
def test_f10_a_zombie(house: House, version: int) -> None:
    old = written(house, version)
    new = house.producer(version)
    assert old.write("A", b"late") == STALE
    assert old.end(commit=True) == FENCED
    assert house.seen == ABORTED
    assert new.send("A", b"new") == GOOD
    assert new.end(commit=True) == GOOD
    assert house.read("A", committed=True) == [b"new"]


@VERSIONS
def test_f11_a_batch_that_comes_too_late(house: House, version: int) -> None:
    producer = written(house, version)
    late = TransactionalProducer(house.client, NAME, version, 60_000, producer.producer_id, producer.epoch, {"A": 1})
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A", "B")
    house.wait_for(Status.COMPLETE_COMMIT)
    assert late.write("A", b"late") == (STALE if version == 2 else ErrorCode.TRANSACTION_ABORTABLE)
    assert house.seen == COMMITTED


def test_f12_a_topic_that_is_deleted(house: House) -> None:
    producer = written(house)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="A")], timeout_ms=10_000)
    house.client.ask(request, DeleteTopicsResponse)
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("B")
    assert house.read("B", committed=True) == [b"x"]
    assert producer.send("B", b"next") == GOOD


@VERSIONS
def test_f13_no_room_for_the_decision(house: House, version: int) -> None:
    producer = written(house, version)
    house.fill(STATE_LOG)
    assert producer.end(commit=True, patience_seconds=0) != GOOD
    assert house.seen == OPEN
    house.disk.full.clear()
    assert producer.end(commit=False) == GOOD
    house.wait_until_ended("A", "B")
    assert house.seen == ABORTED


@VERSIONS
def test_f14_no_room_for_a_marker(house: House, version: int) -> None:
    producer = written(house, version)
    house.fill("B-0")
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A")
    assert house.seen == {"A": (True, True), "B": (True, False)}
    house.disk.full.clear()
    house.wait_until_ended("A", "B")
    assert house.seen == COMMITTED


def test_f15_an_id_that_nobody_uses(house: House) -> None:
    producer = house.producer()
    house.clock.advance(7 * 86_400_000 + 1)
    house.wait_for(None)
    assert producer.send("A", b"x") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert house.seen == {"A": (False, False), "B": (False, False)}
    assert producer.begin().epoch == 0


# Readers


def test_r1_only_what_was_committed_is_given(house: House) -> None:
    one, two = house.producer(name="one"), house.producer(name="two")
    for number in range(6):
        assert one.send("A", b"one-%d" % number) == GOOD
        assert two.send("A", b"two-%d" % number) == GOOD
        assert one.end(commit=number % 2 == 0) == GOOD
        assert two.end(commit=number % 3 == 0) == GOOD
    house.wait_until_ended("A")
    assert house.read("A", committed=True) == [b"one-0", b"two-0", b"one-2", b"two-3", b"one-4"]
    assert len(house.read("A", committed=False)) == 12


def test_r2_in_order_and_once(house: House) -> None:
    producer = house.producer()
    for number in range(20):
        assert producer.send("A", b"%d" % number) == GOOD
        if number % 4 == 3:
            assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A")
    assert house.read("A", committed=True) == [b"%d" % number for number in range(20)]


def test_r3_partitions_end_one_by_one(house: House) -> None:
    producer = written(house)
    house.fill("B-0")
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A")
    assert house.seen == {"A": (True, True), "B": (True, False)}


def test_r4_what_lies_behind_is_held_back(house: House) -> None:
    producer = house.producer()
    assert producer.send("A", b"x") == GOOD
    assert produce(house.client, "A", batch(b"plain")).error_code == GOOD
    assert house.read("A", committed=True) == []
    assert house.read("A", committed=False) == [b"x", b"plain"]
    assert producer.end(commit=False) == GOOD
    house.wait_until_ended("A")
    assert house.read("A", committed=True) == [b"plain"]


def test_r5_the_end_of_a_partition(house: House) -> None:
    assert produce(house.client, "A", batch(b"plain")).error_code == GOOD
    producer = house.producer()
    assert producer.send("A", b"x") == GOOD
    assert [list_offset(house.client, "A", committed=committed) for committed in (True, False)] == [1, 2]
    assert producer.end(commit=True) == GOOD
    house.wait_until_ended("A")
    assert [list_offset(house.client, "A", committed=committed) for committed in (True, False)] == [3, 3]
