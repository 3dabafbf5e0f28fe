"""Topics that are flushed before a record is acknowledged and before anyone can read it."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PATIENCE_MS,
    PRODUCE_BY_NAME,
    batch,
    consume,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
    values,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import ProduceResponse
from ottla.runtime.real_disk import RealDisk, RealFile

LATEST, DEBUGGING_REPLICA = -1, -2


class WatchedDisk(RealDisk):
    """Counts the fsyncs of one topic's segments, holds them back or lets them fail, as the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.topic = ""
        self.syncs = 0
        self.fails = False
        self.may_sync = threading.Event()
        self.may_sync.set()

    def new_file(self, path: str, size: int = 0) -> RealFile:
        return WatchedFile(self, path, size) if path.endswith(".log") else super().new_file(path, size)


class WatchedFile(RealFile):
    __slots__ = ("_watched",)

    def __init__(self, disk: WatchedDisk, path: str, size: int) -> None:
        super().__init__(disk, path, size)
        self._watched = disk

    def sync(self) -> None:
        if self._watched.topic and f"/{self._watched.topic}-" in self.path:
            self._watched.syncs += 1
            assert self._watched.may_sync.wait(60)
            if self._watched.fails:
                raise OSError(errno.EIO, "the device does not answer")
        super().sync()


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


@pytest.fixture
def port(tmp_path: Path, disk: WatchedDisk) -> Iterator[int]:
    with BrokerThread(tmp_path, disk=disk) as running:
        yield running.port
        disk.may_sync.set()


@pytest.fixture
def client(port: int) -> Iterator[WireClient]:
    with WireClient(port) as connected:
        yield connected


def log_end_offset(client: WireClient, topic: str) -> int:
    """Where the log ends, visible or not."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=DEBUGGING_REPLICA, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    ((answer,),) = (found.partitions for found in client.ask(request, ListOffsetsResponse).topics)
    assert answer.error_code == ErrorCode.NONE
    return answer.offset


def wait_for_end(client: WireClient, topic: str, end_offset: int) -> None:
    for _ in range(100_000):
        if log_end_offset(client, topic) == end_offset:
            return
    raise AssertionError(f"the log never reached {end_offset}")


FLUSHED_FIRST = [{"flush.messages": "1"}, {"ottla.flush.before.ack": "true"}]


@pytest.mark.parametrize("configs", FLUSHED_FIRST)
@pytest.mark.parametrize("acks", [1, -1])
def test_nothing_is_acknowledged_or_visible_before_the_flush(
    client: WireClient, port: int, disk: WatchedDisk, configs: dict[str, str], acks: int
) -> None:
    create_topic(client, "safe", configs=configs)
    disk.topic = "safe"
    disk.may_sync.clear()
    request = produce_request("safe", batch(b"one"), acks=acks)
    with WireClient(port) as producer, WireClient(port) as reader:
        producer.send(request, PRODUCE_BY_NAME)
        poll = fetch_request("safe", 0, max_wait_ms=PATIENCE_MS)
        reader.send(poll, FETCH_BY_NAME)
        wait_for_end(client, "safe", 1)
        answer = fetch(client, "safe", 0)
        assert (answer.high_watermark, values(answer)) == (0, [])
        producer.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            producer.socket.recv(1)
        producer.socket.settimeout(20)
        disk.may_sync.set()
        response = producer.receive(request, ProduceResponse, PRODUCE_BY_NAME)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert values(only_partition(reader.receive(poll, FetchResponse, FETCH_BY_NAME))) == [b"one"]


@pytest.mark.parametrize("configs", FLUSHED_FIRST)
def test_requests_that_wait_share_one_flush(
    client: WireClient, port: int, disk: WatchedDisk, configs: dict[str, str]
) -> None:
    """The first request starts a flush; the 29 that come during it are all served by the next one."""
    create_topic(client, "safe", configs=configs)
    disk.topic = "safe"
    disk.may_sync.clear()
    requests = [produce_request("safe", batch(b"%d" % number)) for number in range(30)]
    with WireClient(port) as one, WireClient(port) as two:
        one.send(requests[0], PRODUCE_BY_NAME)
        wait_for_end(client, "safe", 1)
        for number, request in enumerate(requests[1:], 1):
            (one if number % 2 else two).send(request, PRODUCE_BY_NAME)
        wait_for_end(client, "safe", 30)
        disk.may_sync.set()
        for number, request in enumerate(requests):
            producer = one if number % 2 or not number else two
            (answered,) = producer.receive(request, ProduceResponse, PRODUCE_BY_NAME).responses
            assert answered.partition_responses[0].error_code == ErrorCode.NONE
    assert disk.syncs == 2
    assert len(set(consume(client, "safe", 30))) == 30


def test_every_third_record_is_flushed(client: WireClient, disk: WatchedDisk) -> None:
    create_topic(client, "now-and-then", configs={"flush.messages": "3"})
    disk.topic = "now-and-then"
    seen = []
    for number in range(9):
        assert produce(client, "now-and-then", batch(b"%d" % number)).error_code == ErrorCode.NONE
        seen.append(disk.syncs)
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2, 3]


def test_other_topics_are_not_flushed(client: WireClient, disk: WatchedDisk) -> None:
    create_topic(client, "plain")
    disk.topic = "plain"
    for number in range(20):
        produce(client, "plain", batch(b"%d" % number))
    assert disk.syncs == 0


def test_a_flush_that_fails_is_no_acknowledgement(client: WireClient, disk: WatchedDisk) -> None:
    create_topic(client, "safe", configs={"flush.messages": "1"})
    assert produce(client, "safe", batch(b"one")).error_code == ErrorCode.NONE
    disk.topic, disk.fails = "safe", True
    assert produce(client, "safe", batch(b"two")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fails = False
    assert produce(client, "safe", batch(b"three")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert fetch(client, "safe", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_acks_0_is_visible_after_the_flush(client: WireClient, disk: WatchedDisk) -> None:
    create_topic(client, "safe", configs={"flush.messages": "1"})
    disk.topic = "safe"
    client.send(produce_request("safe", batch(b"one"), acks=0), PRODUCE_BY_NAME)
    assert consume(client, "safe", 1) == [b"one"]
    assert disk.syncs == 1


def test_a_timeout_is_told(client: WireClient, disk: WatchedDisk) -> None:
    create_topic(client, "safe", configs={"flush.messages": "1"})
    disk.topic = "safe"
    disk.may_sync.clear()
    request = produce_request("safe", batch(b"one"))
    request.timeout_ms = 10
    (answered,) = client.ask(request, ProduceResponse, PRODUCE_BY_NAME).responses
    assert answered.partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    disk.may_sync.set()
    assert consume(client, "safe", 1) == [b"one"]
