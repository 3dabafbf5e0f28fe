"""Replicas move between the directories of a running broker, which serves on meanwhile."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.log_dir_questions import move, move_request
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PATIENCE_MS,
    batch,
    consume,
    create_topic,
    fetch,
    fetch_request,
    new_producer_id,
    produce,
)
from tests.unit.broker.test_broker_directories import wait_until
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsResponse
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ottla.protocol.messages.fetch import FetchResponse
from ottla.runtime.disk import Buffer
from ottla.testing.faulty_disk import FaultyDisk, FaultyFile

BAD = ErrorCode.KAFKA_STORAGE_ERROR
VALUE = b"x" * 1000


class GatedDisk(FaultyDisk):
    """Nothing is written to a future directory while the gate is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.is_reached = threading.Event()

    def new_file(self, path: str, size: int = 0) -> FaultyFile:
        if "-future/" in path and path.endswith(".log"):
            return self.known(GatedFile(self, path, size))
        return super().new_file(path, size)


class GatedFile(FaultyFile):
    __slots__ = ("_gated",)

    def __init__(self, disk: GatedDisk, path: str, size: int) -> None:
        super().__init__(disk, path, size)
        self._gated = disk

    def append(self, chunks: Sequence[Buffer]) -> int:
        self._gated.is_reached.set()
        self._gated.gate.wait()
        return super().append(chunks)


class Machine:
    def __init__(self, directory: Path, count: int = 2) -> None:
        self.disk = GatedDisk()
        self.paths = [str(directory / name) for name in ("one", "two", "three")[:count]]
        self._directory = directory
        self.thread = self._start()

    def _start(self) -> BrokerThread:
        properties = {"log.dirs": ",".join(self.paths), "log.segment.delete.delay.ms": "0"}
        return BrokerThread(self._directory, properties, disk=self.disk).start()

    def restart(self) -> None:
        self.disk.gate.set()
        self.thread.stop()
        self.thread = self._start()

    def kill(self) -> None:
        self.disk.gate.set()
        self.thread.kill()
        self.thread = self._start()

    def connect(self) -> WireClient:
        return WireClient(self.thread.port)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.disk.gate.set()
    made.thread.stop()


def replicas(client: WireClient, topic: str = "t", index: int = 0) -> dict[str, DescribeLogDirsPartition]:
    """What is told of a partition, by the directory's name; a future one has a star."""
    answer = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {
        Path(result.log_dir).name + ("*" if each.is_future_key else ""): each
        for result in answer.results
        for found in result.topics
        for each in found.partitions
        if (found.name, each.partition_index) == (topic, index)
    }


def move_to(client: WireClient, path: str, topic: str = "t") -> int:
    return move(client, [(path, [(topic, [0])])])[topic][0]


def arrived(client: WireClient, name: str, topic: str = "t") -> None:
    wait_until(lambda: list(replicas(client, topic)) == [name])


def test_writing_and_reading_go_on(machine: Machine) -> None:
    machine.disk.gate.clear()
    with machine.connect() as client, machine.connect() as reader:
        create_topic(client, "t", configs={"segment.bytes": "1048576"})
        for _ in range(4):
            assert produce(client, "t", batch(*[VALUE] * 300)).error_code == 0
        assert list(replicas(client)) == ["one"]
        assert move_to(client, machine.paths[1]) == 0
        found = replicas(client)
        assert list(found) == ["one", "two*"]
        assert (found["two*"].offset_lag, found["two*"].partition_size) == (1200, 0)
        assert (found["one"].offset_lag, found["one"].is_future_key) == (0, False)
        assert machine.disk.is_reached.wait(PATIENCE_MS / 1000)
        assert produce(client, "t", batch(b"meanwhile")).base_offset == 1200
        assert fetch(client, "t", 1200).high_watermark == 1201
        poll = fetch_request("t", 1201, max_wait_ms=PATIENCE_MS)
        reader.send(poll, FETCH_BY_NAME)
        # The same again changes nothing.
        assert move_to(client, machine.paths[1]) == 0
        machine.disk.gate.set()
        arrived(client, "two")
        assert produce(client, "t", batch(b"after")).base_offset == 1201
        assert reader.receive(poll, FetchResponse, FETCH_BY_NAME).responses[0].partitions[0].high_watermark == 1202
        assert consume(client, "t", 1202)[1200:] == [b"meanwhile", b"after"]
        wait_until(lambda: not list(Path(machine.paths[0]).glob("t-0*")))
    machine.restart()
    with machine.connect() as client:
        assert list(replicas(client)) == ["two"]
        assert consume(client, "t", 1202) == [VALUE] * 1200 + [b"meanwhile", b"after"]


def test_a_producer_is_known_in_the_new_place(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", configs={"flush.messages": "1"})
        producer_id = new_producer_id(client)

        def sent(value: bytes, sequence: int) -> bytes:
            return batch(value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

        first = sent(b"first", 0)
        assert produce(client, "t", first).base_offset == 0
        assert move_to(client, machine.paths[1]) == 0
        second = sent(b"second", 1)
        assert produce(client, "t", second).base_offset == 1
        arrived(client, "two")
        assert [produce(client, "t", each).base_offset for each in (second, first)] == [1, 0]
        gap = produce(client, "t", sent(b"gap", 7))
        assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(client, "t", sent(b"third", 2)).base_offset == 2
    machine.kill()
    with machine.connect() as client:
        assert produce(client, "t", sent(b"fourth", 3)).base_offset == 3
        assert consume(client, "t", 4) == [b"first", b"second", b"third", b"fourth"]


def test_the_directory_it_is_in_calls_the_move_off(machine: Machine) -> None:
    machine.disk.gate.clear()
    with machine.connect() as client, machine.connect() as other:
        create_topic(client, "t")
        assert produce(client, "t", batch(VALUE)).error_code == 0
        assert move_to(client, machine.paths[1]) == 0
        assert machine.disk.is_reached.wait(PATIENCE_MS / 1000)
        request = move_request([(machine.paths[0], [("t", [0])])])
        other.send(request)
        # The broker looks at all its connections in each turn: after two answers it has the request, if not after one.
        for _ in range(2):
            replicas(client)
        machine.disk.gate.set()
        other.receive(request, AlterReplicaLogDirsResponse)
        assert list(replicas(client)) == ["one"]
        assert list(Path(machine.paths[1]).glob("t-0*")) == []
        assert consume(client, "t", 1) == [VALUE]


def test_another_directory_takes_the_place_of_the_first(tmp_path: Path) -> None:
    machine = Machine(tmp_path, count=3)
    machine.disk.gate.clear()
    with machine.connect() as client, machine.connect() as other:
        create_topic(client, "t")
        assert produce(client, "t", batch(VALUE)).error_code == 0
        assert move_to(client, machine.paths[1]) == 0
        assert machine.disk.is_reached.wait(PATIENCE_MS / 1000)
        request = threading.Thread(target=move_to, args=(other, machine.paths[2]))
        request.start()
        machine.disk.gate.set()
        request.join()
        arrived(client, "three")
        assert list(Path(machine.paths[1]).glob("t-0*")) == []
        assert consume(client, "t", 1) == [VALUE]
    machine.thread.stop()


def test_a_wish_for_a_topic_that_comes_later(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "first")
        assert move(client, [(machine.paths[0], [("later", [0, 1, 2])])]) == {
            "later": dict.fromkeys(range(3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        }
        create_topic(client, "later", partitions=3)
        assert [list(replicas(client, "later", index)) for index in range(3)] == [["one"]] * 3


def test_deleting_records_and_the_topic_meanwhile(machine: Machine) -> None:
    machine.disk.gate.clear()
    with machine.connect() as client, machine.connect() as other:
        create_topic(client, "t")
        create_topic(client, "gone", partitions=2)
        for topic in ("t", "gone"):
            for number in range(5):
                assert produce(client, topic, batch(b"%d" % number)).error_code == 0
        assert [move_to(client, machine.paths[1], topic) for topic in ("t", "gone")] == [0, 0]
        deleted = DeleteRecordsPartition(partition_index=0, offset=3)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[deleted])], timeout_ms=1000)
        (answer,) = client.ask(request, DeleteRecordsResponse).topics[0].partitions
        assert answer.low_watermark == 3
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=PATIENCE_MS)
        other.send(deletion)
        machine.disk.gate.set()
        (result,) = other.receive(deletion, DeleteTopicsResponse).responses
        assert result.error_code == 0
        arrived(client, "two")
        create_topic(client, "gone")
        assert fetch(client, "gone", 0).high_watermark == 0
        wait_until(lambda: not [path for each in machine.paths for path in Path(each).glob("gone-0.*")])
    machine.kill()
    with machine.connect() as client:
        assert fetch(client, "t", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert fetch(client, "t", 3).log_start_offset == 3


def test_a_full_target_ends_the_move_and_a_broken_one_is_out_of_use(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t")
        assert produce(client, "t", batch(VALUE)).error_code == 0
        machine.disk.full.add(machine.paths[1])
        assert move_to(client, machine.paths[1]) == BAD
        assert (list(replicas(client)), produce(client, "t", batch(VALUE)).error_code) == (["one"], 0)
        machine.disk.full.clear()
        machine.disk.gate.clear()
        assert move_to(client, machine.paths[1]) == 0
        assert machine.disk.is_reached.wait(PATIENCE_MS / 1000)
        machine.disk.full.add(machine.paths[1])
        machine.disk.gate.set()
        arrived(client, "one")
        machine.disk.full.clear()
        machine.disk.gate.clear()
        machine.disk.is_reached.clear()
        assert move_to(client, machine.paths[1]) == 0
        assert machine.disk.is_reached.wait(PATIENCE_MS / 1000)
        machine.disk.broken.add(machine.paths[1])
        machine.disk.gate.set()
        arrived(client, "one")
        assert produce(client, "t", batch(b"still")).base_offset == 2
        assert move_to(client, machine.paths[1]) == BAD
        assert move_to(client, machine.paths[0]) == 0
    machine.disk.broken.clear()
    machine.restart()
    with machine.connect() as client:
        # What was under way when the disk failed goes on.
        arrived(client, "two")
        assert consume(client, "t", 3)[2] == b"still"


def test_a_move_goes_on_after_a_restart_and_after_a_kill(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t")
        assert produce(client, "t", batch(*[VALUE] * 20)).error_code == 0
    for restart, name in ((machine.restart, "two"), (machine.kill, "one")):
        machine.disk.gate.clear()
        machine.disk.is_reached.clear()
        with machine.connect() as client:
            assert move_to(client, machine.paths[name == "two"]) == 0
            assert machine.disk.is_reached.wait(PATIENCE_MS / 1000)
        restart()
        with machine.connect() as client:
            arrived(client, name)
            assert consume(client, "t", 20) == [VALUE] * 20
            wait_until(lambda: len([path for each in machine.paths for path in Path(each).glob("t-0*")]) == 1)


def test_no_replica_moves_while_a_directory_is_out_of_use(tmp_path: Path) -> None:
    machine = Machine(tmp_path, count=3)
    with machine.connect() as client:
        create_topic(client, "t", partitions=3)
        machine.disk.broken.add(machine.paths[2])
        assert produce(client, "t", batch(VALUE), partition=2).error_code == BAD
        assert move(client, [(machine.paths[1], [("t", [0, 1, 2])])]) == {"t": {0: BAD, 1: 0, 2: BAD}}
    machine.thread.stop()
