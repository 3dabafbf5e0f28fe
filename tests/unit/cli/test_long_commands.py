"""Commands that run until somebody ends them, and what is at the other end of a pipe."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.peers.paths import REPOSITORY
from tests.unit.cli.command_line import CommandLine

from ottla.cli.sending import MAX_OPEN
from ottla.testing import TestBroker

TIMEOUT_SECONDS = 60
FAILED = 1
INTERRUPTED = 130
PIPE_BYTES = 65536


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def start(
    broker: TestBroker, *arguments: str, out: int, err: int = subprocess.PIPE, given: int | None = None
) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "src"),
        "OTTLA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "COLUMNS": "160",
        "TERM": "xterm",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "ottla", *arguments],
        stdin=given,
        stdout=out,
        stderr=err,
        env=environment,
        preexec_fn=_heed_ctrl_c,
    )


def _heed_ctrl_c() -> None:
    """As in a terminal. Who is started in the background of a script ignores it, and so do all its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def end(process: "subprocess.Popen[bytes]", number: signal.Signals) -> tuple[int, bytes]:
    process.send_signal(number)
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    return process.returncode, err


def read_until(descriptor: int, holds: Callable[[bytes], bool]) -> bytes:
    """What comes until it is what was waited for; a process that prints no more ends the test by its timeout."""
    seen = b""
    while not holds(seen):
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:
            chunk = b""
        assert chunk, seen
        seen += chunk
    return seen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_following_ends_well_when_it_is_told_to(broker: TestBroker, topic: str, number: signal.Signals) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "first")
    out, writing = os.pipe()
    process = start(broker, "consume", topic, "--from", "beginning", "--follow", out=writing)
    os.close(writing)
    read_until(out, lambda seen: seen == b"first\n")
    broker.produce(topic, "second")
    read_until(out, lambda seen: seen == b"second\n")
    code, err = end(process, number)
    os.close(out)
    assert (code, err) == (0, b"")


def test_lag_as_a_live_table(broker: TestBroker, topic: str) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "first")
    group = f"group-{topic}"
    moved = start(broker, "groups", "reset", group, "--to", "beginning", "-t", topic, "--apply", out=subprocess.DEVNULL)
    assert moved.wait(TIMEOUT_SECONDS) == 0
    moved.communicate()
    ours, theirs = pty.openpty()
    process = start(broker, "groups", "lag", group, "--watch", "--interval", "0.2", out=theirs)
    os.close(theirs)
    read_until(ours, lambda seen: b"lag 1 " in seen and topic.encode() in seen)
    broker.produce(topic, "second")
    read_until(ours, lambda seen: b"lag 2 " in seen)
    process.send_signal(signal.SIGINT)
    assert _ended_while_read(process, ours) == 0
    os.close(ours)
    assert process.communicate()[1] == b""


def _ended_while_read(process: "subprocess.Popen[bytes]", terminal: int) -> int:
    """How it ended. A terminal that nobody reads, or that is gone, would get in its way."""
    reading = threading.Thread(target=_drain, args=(terminal,))
    reading.start()
    code = process.wait(TIMEOUT_SECONDS)
    reading.join(TIMEOUT_SECONDS)
    return code


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        return


def test_who_reads_may_have_seen_enough(broker: TestBroker, topic: str) -> None:
    """As in `ottla consume orders | head -1`."""
    broker.create_topic(topic)
    for number in range(20):
        broker.produce(topic, f"{number}" * 30_000)
    out, writing = os.pipe()
    process = start(broker, "consume", topic, out=writing)
    os.close(writing)
    assert os.read(out, 1) == b"0"
    os.close(out)
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, err) == (0, b"")


def test_work_that_is_cut_short_says_so(broker: TestBroker, topic: str) -> None:
    """Although more could still come from whoever is at the other end."""
    broker.create_topic(topic)
    reading, writing = os.pipe()
    process = start(broker, "produce", topic, given=reading, out=subprocess.DEVNULL)
    os.close(reading)
    os.write(writing, b"first\n")
    broker.wait_for_records(topic, 1)
    _, err = end(process, signal.SIGINT)
    os.close(writing)
    assert process.returncode == INTERRUPTED
    assert b"Traceback" not in err


def test_a_copy_shows_how_far_it_is(broker: TestBroker, topic: str, tmp_path: Path) -> None:
    broker.create_topic(topic)
    for number in range(3):
        broker.produce(topic, str(number))
    ours, theirs = pty.openpty()
    process = start(broker, "cp", topic, str(tmp_path / "out.jsonl"), out=subprocess.DEVNULL, err=theirs)
    os.close(theirs)
    shown = read_until(ours, lambda seen: b"3 records" in seen and b"100%" in seen)
    assert _ended_while_read(process, ours) == 0
    os.close(ours)
    assert f"topic {topic}".encode() in shown
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3


def test_reports_that_nobody_reads_do_not_end_the_sending(broker: TestBroker, topic: str, tmp_path: Path) -> None:
    """As in `ottla produce orders --report < orders.txt | head -1`: more than may be on its way at once."""
    count = MAX_OPEN + 10_000
    broker.create_topic(topic)
    lines = tmp_path / "lines"
    lines.write_text("x\n" * count)
    out, writing = os.pipe()
    process = start(broker, "produce", topic, "--file", str(lines), "--report", out=writing)
    os.close(writing)
    os.close(out)
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, err) == (0, b"")
    assert len(broker.records(topic)) == count


def committed(broker: TestBroker, group: str) -> int:
    (row,) = CommandLine(broker.bootstrap_servers)("groups", "lag", group, "--json").lines or [{"committed": 0}]
    return int(row["committed"])


def test_what_was_not_written_out_is_not_committed(broker: TestBroker, topic: str) -> None:
    """As in `ottla consume orders --group billing --from beginning | head -1`."""
    broker.create_topic(topic)
    ottla = CommandLine(broker.bootstrap_servers)
    line = b"x" * 99 + b"\n"
    ottla("produce", topic, stdin=line * 12_000)
    group = f"group-{topic}"
    ottla("groups", "reset", group, "--topic", topic, "--to", "beginning", "--apply")
    out, writing = os.pipe()
    process = start(broker, "consume", topic, "--group", group, out=writing)
    os.close(writing)
    read = len(os.read(out, 1))
    os.close(out)
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, err) == (0, b"")
    assert committed(broker, group) * len(line) <= read + PIPE_BYTES


def test_a_member_that_is_told_to_end_commits_what_it_wrote(broker: TestBroker, topic: str) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "first")
    group = f"group-{topic}"
    out, writing = os.pipe()
    process = start(broker, "consume", topic, "--group", group, "--from", "beginning", out=writing)
    os.close(writing)
    read_until(out, lambda seen: seen == b"first\n")
    assert end(process, signal.SIGINT) == (0, b"")
    os.close(out)
    assert committed(broker, group) == 1


@pytest.mark.parametrize("command", [["consume", "TOPIC"], ["topics", "list", "--json"], ["topics", "list"]])
def test_a_full_disk_is_told_in_one_line(broker: TestBroker, topic: str, command: list[str]) -> None:
    broker.create_topic(topic)
    broker.produce(topic, "first")
    with open("/dev/full", "wb") as full:
        process = start(broker, *(word.replace("TOPIC", topic) for word in command), out=full.fileno())
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == FAILED
    assert len(err.splitlines()) == 1
    assert b"No space left on device" in err
