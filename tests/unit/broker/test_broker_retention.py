"""A broker that forgets: by size and by age, while clients read and write, over a stop and over a kill.

With `--target=kafka` it is Apache Kafka.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import start_broker
from tests.peers.process import ServerProcess
from tests.unit.broker.api.questions import NOW_MS, batch, create_topic, fetch, new_producer_id, produce, values
from tests.unit.broker.api.test_api_delete_records import EARLIEST, delete, offset_at, outcome
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode

# Every batch gets an index entry of 8 bytes, and a full index rolls its segment.
TINY_SEGMENTS = {"segment.index.bytes": "48", "index.interval.bytes": "0"}
# Apache Kafka begins with its periodic work after half a minute unless told otherwise.
OFTEN = {"log.retention.check.interval.ms": "5", "log.initial.task.delay.ms": "5"}
PATIENCE_SECONDS = 60.0

Start = Callable[[dict[str, str]], ServerProcess]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"


@contextlib.contextmanager
def connected(server: ServerProcess) -> Iterator[WireClient]:
    assert server.port is not None
    with WireClient(server.port) as client:
        yield client


@pytest.fixture
def start(target: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a broker with settings of the test's own, and ends it."""
    servers: list[ServerProcess] = []

    def start_one(properties: dict[str, str]) -> ServerProcess:
        servers.append(start_broker(target, tmp_path, properties=properties))
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


def read_on(client: WireClient, topic: str) -> list[bytes | None]:
    """Everything from the first offset that is left, the way a consumer with auto.offset.reset=earliest reads it."""
    found: list[bytes | None] = []
    offset = offset_at(client, topic, EARLIEST)[0]
    while True:
        answer = fetch(client, topic, offset)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            found, offset = [], offset_at(client, topic, EARLIEST)[0]
            continue
        assert answer.error_code == ErrorCode.NONE
        new = values(answer)
        if not new:
            return found
        found += new
        offset += len(new)


def test_retention_by_size_while_records_come(start: Start) -> None:
    size = len(batch(b"000"))
    configs = {**TINY_SEGMENTS, "retention.bytes": str(10 * size), "retention.ms": "-1", "file.delete.delay.ms": "0"}
    server = start(OFTEN)
    directory = server.partition_directory("topic", 0)
    with connected(server) as client:
        create_topic(client, "topic", configs=configs)
        for number in range(200):
            assert produce(client, "topic", batch(b"%03d" % number)).base_offset == number
        # Whole segments of seven batches go, and what is left is at least as large as it may be.
        until(lambda: 183 < offset_at(client, "topic", EARLIEST)[0] <= 190)
        first = offset_at(client, "topic", EARLIEST)[0]
        assert fetch(client, "topic", first - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert read_on(client, "topic") == [b"%03d" % number for number in range(first, 200)]
        # The start moves before the files are renamed.
        until(lambda: min(directory.glob("*.log")).name == f"{first:020d}.log")
        until(lambda: not list(directory.glob("*.deleted")))
    server.stop()
    server.start()
    with connected(server) as client:
        until(lambda: fetch(client, "topic", first).error_code == ErrorCode.NONE)
        assert offset_at(client, "topic", EARLIEST)[0] == first
        assert read_on(client, "topic") == [b"%03d" % number for number in range(first, 200)]


def test_a_topic_that_is_old_altogether_goes_on_at_its_end(start: Start) -> None:
    """The batches are years old. The topic beside it keeps its own for ever."""
    with connected(start({**OFTEN, "log.retention.ms": "3600000"})) as client:
        create_topic(client, "kept", configs={"retention.ms": "-1"})
        create_topic(client, "old", configs=TINY_SEGMENTS)
        producer = new_producer_id(client)
        for number in range(20):
            for topic in ("kept", "old"):
                sent = batch(b"%d" % number, producer_id=producer, producer_epoch=0, base_sequence=number)
                assert produce(client, topic, sent).base_offset == number
        until(lambda: offset_at(client, "old", EARLIEST)[0] == 20)
        assert read_on(client, "old") == []
        again = batch(b"19", producer_id=producer, producer_epoch=0, base_sequence=19)
        assert produce(client, "old", again).base_offset == 19
        young = batch(b"20", timestamp=int(time.time() * 1000))
        assert produce(client, "old", young).base_offset == 20
        assert read_on(client, "old") == [b"20"]
        assert read_on(client, "kept") == [b"%d" % number for number in range(20)]


def test_segments_of_deleted_records_go(start: Start) -> None:
    server = start(OFTEN)
    directory = server.partition_directory("topic", 0)
    with connected(server) as client:
        create_topic(client, "topic", configs={**TINY_SEGMENTS, "retention.ms": "-1", "file.delete.delay.ms": "0"})
        for number in range(30):
            produce(client, "topic", batch(b"%d" % number))
        before = len(list(directory.glob("*.log")))
        assert outcome(delete(client, "topic", 17)) == (ErrorCode.NONE, 17)
        until(lambda: len(list(directory.glob("*.log"))) < before)
        assert offset_at(client, "topic", EARLIEST)[0] == 17
        assert read_on(client, "topic") == [b"%d" % number for number in range(17, 30)]


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_deleted_records_stay_deleted(start: Start, stop: str) -> None:
    """After a kill as soon as the new start is written down, which happens every minute unless told otherwise."""
    often = {"log.flush.start.offset.checkpoint.interval.ms": "5", "log.initial.task.delay.ms": "5"}
    server = start(often if stop == "kill" else {})
    checkpoint = server.data_directory / "log-start-offset-checkpoint"
    with connected(server) as client:
        create_topic(client, "topic")
        for number in range(10):
            produce(client, "topic", batch(b"%d" % number, timestamp=NOW_MS))
        assert outcome(delete(client, "topic", 6)) == (ErrorCode.NONE, 6)
        if stop == "kill":
            until(lambda: checkpoint.exists() and "topic 0 6" in checkpoint.read_text())
    if stop == "kill":
        server.kill()
    else:
        server.stop()
    assert "topic 0 6" in checkpoint.read_text()
    server.start()
    with connected(server) as client:
        until(lambda: fetch(client, "topic", 6).error_code == ErrorCode.NONE)
        assert offset_at(client, "topic", EARLIEST)[0] == 6
        assert fetch(client, "topic", 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert read_on(client, "topic") == [b"%d" % number for number in range(6, 10)]
        assert produce(client, "topic", batch(b"10")).base_offset == 10
