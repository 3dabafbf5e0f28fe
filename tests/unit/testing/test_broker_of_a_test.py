"""A broker inside the test process: its life, its records, its clock, and nothing left behind."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.model import Message
from tests.peers.paths import REPOSITORY

from ottla.broker.broker import StartError
from ottla.broker.config import ConfigError
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.testing import ManualClock, StoredRecord, TestBroker

HOUR_MS = 3_600_000


def values(broker: TestBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_records_are_read_as_they_were_written() -> None:
    with TestBroker() as broker:
        broker.create_topic("orders", partitions=2)
        written = [
            broker.produce("orders", "tea", "customer-1", headers={"trace": "7"}, timestamp=1_700_000_000_000),
            broker.produce("orders", b"\x00\xff", partition=1, headers=[("a", b"1"), ("a", None)]),
            broker.produce("orders", None, b"customer-1"),
        ]
        assert written[0] == StoredRecord("orders", 0, 0, 1_700_000_000_000, b"customer-1", b"tea", (("trace", b"7"),))
        assert written[1].headers == (("a", b"1"), ("a", None))
        assert [(record.partition, record.offset) for record in written] == [(0, 0), (1, 0), (0, 1)]
        assert broker.records("orders") == [written[0], written[2], written[1]]
        assert broker.records("orders", partition=1) == [written[1]]
        assert broker.topics() == {"orders": 2}


def test_clients_and_the_broker_see_the_same_records() -> None:
    with TestBroker({"num.partitions": "3"}) as broker:
        client = ConfluentClient(broker.bootstrap_servers)
        messages = [Message(b"%d" % number * 100, key=b"k", headers=(("n", b"1"),)) for number in range(500)]
        client.produce("made-on-demand", 2, messages, codec="zstd")
        broker.produce("made-on-demand", "one more", partition=2)
        stored = broker.records("made-on-demand")
        assert [record.value for record in stored] == [*(message.value for message in messages), b"one more"]
        assert [record.offset for record in stored] == list(range(501))
        assert {record.partition for record in stored} == {2}
        consumed = client.consume("made-on-demand", 2, 0, 501)
        assert [(one.offset, one.timestamp_ms, one.value) for one in consumed] == [
            (one.offset, one.timestamp, one.value) for one in stored
        ]


def test_waiting_for_records_of_a_topic_that_is_yet_to_be() -> None:
    with TestBroker() as broker, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(broker.wait_for_records, "late", 3)
        for number in range(4):
            broker.produce("late", str(number))
        assert [record.value for record in waiting.result()][:3] == [b"0", b"1", b"2"]
        with pytest.raises(TimeoutError, match="5 records expected in late, 4 came"):
            broker.wait_for_records("late", 5, timeout_seconds=0.05)


def test_a_restart_keeps_data_and_port() -> None:
    with TestBroker() as broker:
        servers = broker.bootstrap_servers
        client = ConfluentClient(servers)
        client.create_topic("kept", partitions=2)
        client.produce("kept", 0, [Message(b"before")])
        for number in range(2):
            assert broker.restart().bootstrap_servers == servers
            broker.produce("kept", str(number))
        assert values(broker, "kept") == [b"before", b"0", b"1"]
        assert client.partition_count("kept") == 2


def test_a_kill_loses_nothing_that_was_acknowledged_and_is_no_clean_stop() -> None:
    marker = ".kafka_cleanshutdown"
    with TestBroker() as broker:
        client = ConfluentClient(broker.bootstrap_servers)
        client.create_topic("kept", configs={"segment.bytes": "1048576"})
        client.produce("kept", 0, [Message(b"%d" % number) for number in range(1000)], idempotent=True)
        broker.kill()
        assert not (broker.directory / marker).exists()
        broker.start()
        assert values(broker, "kept") == [b"%d" % number for number in range(1000)]
        client.produce("kept", 0, [Message(b"after")], idempotent=True)
        broker.stop()
        assert (broker.directory / marker).exists()


def test_a_kill_breaks_connections_and_a_client_comes_back() -> None:
    with TestBroker() as broker, socket.create_connection((broker.host, broker.port), timeout=60) as connection:
        broker.kill()
        assert connection.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((broker.host, broker.port), timeout=60)
        broker.start()
        ConfluentClient(broker.bootstrap_servers).produce("topic", 0, [Message(b"back")])
        assert values(broker, "topic") == [b"back"]


def test_the_clock_stamps_records() -> None:
    with TestBroker(clock=ManualClock(1_000_000)) as broker:
        broker.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
        client = ConfluentClient(broker.bootstrap_servers)
        client.produce("stamped", 0, [Message(b"first")])
        broker.clock.advance(timedelta(hours=1))
        client.produce("stamped", 0, [Message(b"second", timestamp_ms=5)])
        assert broker.produce("stamped", "third").timestamp == 1_000_000 + HOUR_MS
        assert [record.timestamp for record in broker.records("stamped")] == [
            1_000_000,
            1_000_000 + HOUR_MS,
            1_000_000 + HOUR_MS,
        ]


def test_the_clock_rolls_segments() -> None:
    with TestBroker() as broker:
        broker.create_topic("rolled", configs={"segment.ms": str(HOUR_MS)})
        for _ in range(3):
            broker.produce("rolled", "a")
            broker.produce("rolled", "b")
            broker.clock.advance(2 * HOUR_MS)
        names = sorted(path.name for path in (broker.directory / "rolled-0").glob("*.log"))
        assert names == [f"{offset:020}.log" for offset in (0, 2, 4)]
        assert len(broker.records("rolled")) == 6
        with pytest.raises(ValueError, match="cannot go back"):
            broker.clock.advance(-1)


def test_brokers_side_by_side() -> None:
    def use(number: int) -> tuple[int, list[bytes | None]]:
        with TestBroker() as broker:
            ConfluentClient(broker.bootstrap_servers).produce("same-name", 0, [Message(b"%d" % number)])
            broker.restart()
            return broker.port, values(broker, "same-name")

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(use, range(8)))
    assert [found for _, found in results] == [[b"%d" % number] for number in range(8)]


def test_test_processes_side_by_side(tmp_path: Path) -> None:
    """As the workers of pytest-xdist: each process starts and restarts brokers of its own, the first ones at once."""
    program = """
from concurrent.futures import ThreadPoolExecutor
from ottla.testing import TestBroker

def use(number):
    with TestBroker() as broker:
        broker.produce("topic", str(number))
        broker.restart()
        return [record.value for record in broker.records("topic")]

with ThreadPoolExecutor(3) as pool:
    assert list(pool.map(use, range(6))) == [[b"%d" % number] for number in range(6)]
"""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(tmp_path)}
    workers = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=200)
        assert worker.returncode == 0, errors
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind() -> None:
    """In a process of its own, where nobody else starts threads or opens files."""
    program = """
import os, threading
from ottla.testing import TestBroker

def left():
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    opened = sorted(os.readlink(link) for link in links if os.path.islink(link))
    return threading.enumerate(), opened

TestBroker().start().close()
before = left()
for end in (TestBroker.stop, TestBroker.kill, TestBroker.restart):
    with TestBroker() as broker:
        broker.produce("topic", "value")
        end(broker)
        if not broker.is_running:
            assert left()[0] == before[0], left()
            assert not [name for name in left()[1] if str(broker.directory) in name], left()
            broker.start()
    assert left() == before, (left(), before)
    assert not broker.directory.exists()
try:
    TestBroker({"num.partitions": "none"}).__enter__()
except Exception as error:
    assert "num.partitions" in str(error), error
assert left() == before, (left(), before)
"""
    _run(program).check_returncode()


def _run(program: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == "", done.stderr
    return done


def test_a_port_belongs_to_its_broker_while_it_is_stopped() -> None:
    with TestBroker() as broker:
        port = broker.port
        broker.stop()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        assert broker.start().port == port


def test_a_directory_of_ones_own_stays(tmp_path: Path) -> None:
    with TestBroker(directory=tmp_path) as broker:
        broker.produce("topic", "kept")
        with pytest.raises(StartError, match="in use by another broker"):
            TestBroker({"listeners": "PLAINTEXT://127.0.0.1:0"}, directory=tmp_path).start()
    with TestBroker(directory=tmp_path) as broker:
        assert values(broker, "topic") == [b"kept"]


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"), TestBroker({"num.partitions": "none"}):
        pass
    with TestBroker({"auto.create.topics.enable": "false"}) as broker:
        with pytest.raises(KafkaError, match="there is no topic absent; these exist: none"):
            broker.records("absent")
        with pytest.raises(KafkaError, match="there is no topic absent"):
            broker.produce("absent", "value")
        broker.create_topic("present")
        for wrong in (-1, 1):
            with pytest.raises(KafkaError) as caught:
                broker.records("present", partition=wrong)
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
            broker.create_topic("present")
        with pytest.raises(KafkaError, match="INVALID_CONFIG"):
            broker.create_topic("wrong", configs={"segment.bytes": "some"})
        with pytest.raises(RuntimeError, match="runs already"):
            broker.start()
        broker.stop()
        broker.stop()
        with pytest.raises(RuntimeError, match="not running"):
            broker.records("present")
    never_started = TestBroker()
    with pytest.raises(RuntimeError, match="not started yet"):
        assert never_started.bootstrap_servers
    never_started.close()
