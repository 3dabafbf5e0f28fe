"""No broker there: what a command waits for is said at once, and a wait without hope ends early."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers.paths import REPOSITORY
from tests.unit.cli.command_line import CommandLine

from ottla.cli import waiting

FAILED, INTERRUPTED = 1, 130
TIMEOUT_SECONDS = 60
COMMANDS = [
    ["topics", "list"],
    ["topics", "create", "orders"],
    ["groups", "lag"],
    ["configs", "list"],
    ["cluster"],
    ["consume", "orders"],
    ["consume", "orders", "--group", "billing"],
    ["produce", "orders", "--value", "tea"],
    ["cp", "orders", "-"],
    ["lake", "load", "lake", "orders"],
]


@pytest.fixture
def refusing() -> Iterator[str]:
    """An address at which nobody listens, and nobody else will while it is bound."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "NOTICE_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "REFUSED_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wait_where_all_refuse_ends_with_what_to_do(
    refusing: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    port = refusing.rpartition(":")[2]
    done = CommandLine(refusing)(*command, code=FAILED)
    assert done.err.splitlines() == [
        f"waiting for a broker at {refusing}, 15 s at most (Ctrl-C ends)",
        f"ottla: no broker at {refusing} (connection refused): start one with 'ottla broker --port {port}', "
        "or name another with --bootstrap-server",
    ]
    assert done.out == ""


@pytest.mark.usefixtures("at_once")
def test_programs_read_it_as_json(refusing: str) -> None:
    done = CommandLine(refusing)("topics", "list", "--json", code=FAILED)
    note, error = (json.loads(line) for line in done.err.splitlines())
    assert note == {"note": f"waiting for a broker at {refusing}, 15 s at most (Ctrl-C ends)"}
    assert f"no broker at {refusing}" in error["error"]
    assert done.out == ""


@pytest.mark.usefixtures("at_once")
def test_one_that_does_not_refuse_is_waited_for(refusing: str, silent: str) -> None:
    """As is any broker where a timeout was typed: it may only be starting."""
    ended = CommandLine(f"{refusing},{silent}")("cluster", "-X", "default.api.timeout.ms=300", code=FAILED)
    assert f"nothing was learned about the cluster at {refusing}, {silent} within 0.3 s" in ended.err
    ended = CommandLine(refusing)("cluster", "--timeout", "0.3", code=FAILED)
    assert ended.err.startswith(f"waiting for a broker at {refusing}, 0.3 s at most")
    assert "within 0.3 s" in ended.err


def test_nothing_is_said_where_a_broker_answers(ottla: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "NOTICE_SECONDS", 30.0)
    assert ottla("cluster").err == ""


def test_what_to_do_about_a_broker_elsewhere() -> None:
    """No command here starts it."""
    wait = waiting.Wait(("kafka.example:9092",), 15.0, True)
    text = waiting._nobody_there(wait, "connection refused")
    assert text.startswith("no broker at kafka.example:9092 (connection refused): is it running")
    assert "--timeout 30" in text
    here = waiting.Wait(("localhost:9092", "[::1]:9092"), 15.0, True)
    assert "start one with 'ottla broker', or" in waiting._nobody_there(here, "connection refused")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wait_ends_when_it_is_told_to(silent: str, number: signal.Signals) -> None:
    with _started("topics", "list", "-b", silent) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"waiting for a broker at ")
        process.send_signal(number)
        assert process.wait(TIMEOUT_SECONDS) == INTERRUPTED
        assert process.stderr.read() == b""


def test_a_capture_says_that_it_waits(refusing: str, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "bank.db")) as bank:
        bank.execute("create table accounts (id integer primary key)")
    source = f"sqlite:{tmp_path / 'bank.db'}"
    with _started("capture", source, "-t", "changes", "--table", "accounts=id", "-b", refusing) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting for a broker at {refusing}, for ever (Ctrl-C ends)\n".encode()
        process.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def _started(*arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *arguments], stderr=subprocess.PIPE, env=environment, preexec_fn=_heed_ctrl_c
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
