"""A log directory that is not mounted looks like an empty one: nothing is begun anew that may lie in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import PATIENCE_MS, batch, consume, create_topic, fetch, produce
from tests.unit.broker.test_broker_directories import partitions, places, wait_until
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

GOOD, BAD = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


class Machine:
    """A broker with up to three directories; in two of them, partitions 0 and 2 are in the first."""

    def __init__(self, directory: Path) -> None:
        self.one, self.two, self.three = (directory / name for name in ("one", "two", "three"))
        self.away = directory / "away"
        self._directory = directory
        self.thread: BrokerThread | None = None
        self.start()

    def start(self, *paths: Path) -> None:
        self.stop()
        log_dirs = ",".join(map(str, paths or (self.one, self.two)))
        self.thread = BrokerThread(self._directory, {"log.dirs": log_dirs}).start()

    def stop(self) -> None:
        if self.thread is not None:
            self.thread.stop()
            self.thread = None

    def unmount(self) -> None:
        """What is left is the empty directory that the disk is mounted on."""
        self.stop()
        self.two.rename(self.away)
        self.two.mkdir()

    def mount(self) -> None:
        self.stop()
        for path in self.two.iterdir():
            path.unlink()
        self.two.rmdir()
        self.away.rename(self.two)

    def connect(self) -> WireClient:
        assert self.thread is not None
        return WireClient(self.thread.port)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    with made.connect() as client:
        create_topic(client, "t", partitions=4)
        assert write(client) == [GOOD] * 4
    yield made
    made.stop()


def write(client: WireClient, topic: str = "t", count: int = 4) -> list[int]:
    return [produce(client, topic, batch(b"value"), partition=index).error_code for index in range(count)]


def told(client: WireClient) -> list[int]:
    results = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
    return [result.error_code for result in results]


def test_its_partitions_are_offline_until_it_is_back(machine: Machine) -> None:
    machine.unmount()
    for _ in range(2):
        machine.start()
        with machine.connect() as client:
            assert write(client) == [GOOD, BAD, GOOD, BAD]
            assert fetch(client, "t", 0, partition=1).error_code == BAD
            wait_until(lambda: [each.leader_id for each in partitions(client, "t")] == [1, -1, 1, -1])
            assert told(client) == [GOOD, BAD]
        assert list(machine.two.iterdir()) == []
    with machine.connect() as client:
        create_topic(client, "new", partitions=2)
        assert write(client, "new", 2) == [GOOD, GOOD]
        assert places(client)[str(machine.one)]["new"] == {0, 1}
    machine.mount()
    machine.start()
    with machine.connect() as client:
        wait_until(lambda: [each.leader_id for each in partitions(client, "t")] == [1] * 4)
        assert [len(consume(client, "t", 1, partition=index)) for index in (1, 3)] == [1, 1]
        assert told(client) == [GOOD, GOOD]


def test_one_that_is_no_longer_configured(machine: Machine) -> None:
    machine.start(machine.one)
    with machine.connect() as client:
        assert write(client) == [GOOD, BAD, GOOD, BAD]
    machine.start()
    with machine.connect() as client:
        assert write(client) == [GOOD] * 4
        assert len(consume(client, "t", 2, partition=1)) == 2


def test_another_one_in_its_place(machine: Machine) -> None:
    """One that is meant to be new is used, and still nothing that was in the other is begun anew."""
    machine.unmount()
    (machine.two / "meta.properties").touch()
    machine.start()
    with machine.connect() as client:
        assert (write(client), told(client)) == ([GOOD, BAD, GOOD, BAD], [GOOD, GOOD])
        create_topic(client, "new", partitions=3)
        assert places(client)[str(machine.two)]["new"] >= {0, 1}
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=PATIENCE_MS)
        assert client.ask(deletion, DeleteTopicsResponse).responses[0].error_code == GOOD
        create_topic(client, "t", partitions=4)
        assert write(client) == [GOOD] * 4
    # Nothing is missing any more, so the old one is forgotten, and one that is empty is new again.
    machine.start()
    machine.start(machine.one, machine.two, machine.three)
    with machine.connect() as client:
        assert (write(client), told(client)) == ([GOOD] * 4, [GOOD] * 3)


def test_one_more_than_before(machine: Machine) -> None:
    machine.start(machine.one, machine.two, machine.three)
    with machine.connect() as client:
        assert (write(client), told(client)) == ([GOOD] * 4, [GOOD] * 3)
        create_topic(client, "new", partitions=2)
        assert places(client)[str(machine.three)] == {"new": {0, 1}}
    # And not one more beside one that is missing.
    machine.unmount()
    machine.start(machine.one, machine.two, machine.three)
    with machine.connect() as client:
        assert (write(client), told(client)) == ([GOOD, BAD, GOOD, BAD], [GOOD, BAD, GOOD])
