"""The daemon of Spark's Python workers: what it loads, and what its workers do about garbage."""

from __future__ import annotations

import gc
import os
import socket
import struct
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark.daemon", reason="pyspark is not installed")

from ottla.spark.daemon import _TASKS_A_COLLECTION, preload, sparing


class Node:
    """Refers to itself: only the collector finds that it is garbage."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _own_collector() -> Iterator[None]:
    """Nothing but what is tested collects, and nothing stays frozen."""
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    gc.unfreeze()
    if was_enabled:
        gc.enable()


def test_a_worker_is_called_as_before() -> None:
    calls: list[tuple[object, bool]] = []

    def worker(socket: object, authenticated: bool) -> int:
        calls.append((socket, authenticated))
        return len(calls) - 1

    sparing_worker = sparing(worker)
    assert [sparing_worker("socket", authenticated) for authenticated in (True, False)] == [0, 1]
    assert calls == [("socket", True), ("socket", False)]


def test_a_worker_that_is_told_to_exit_does() -> None:
    def worker(socket: object, authenticated: bool) -> int:
        raise SystemExit(7)

    with pytest.raises(SystemExit, match="7"):
        sparing(worker)(None, True)


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_a_worker_from_which_spark_has_disconnected_ends_without_a_traceback(error: type[OSError]) -> None:
    """What it had to say could not be sent, and nobody waits for it. Other errors are printed by the daemon."""

    def worker(socket: object, authenticated: bool) -> int:
        raise error(32, "gone") if authenticated else OSError(5, "another")

    work = sparing(worker)
    assert work(None, True) != 0
    with pytest.raises(OSError, match="another"):
        work(None, False)


def test_after_a_task_the_collector_has_little_to_look_at() -> None:
    kept: list[list[int]] = []

    def worker(socket: object, authenticated: bool) -> int:
        kept.extend([number] for number in range(1000))
        return 0

    sparing(worker)(None, True)
    assert gc.get_freeze_count() > 1000
    seen = {id(one) for one in gc.get_objects()}
    assert not any(id(one) in seen for one in kept)


def test_garbage_of_tasks_is_found_in_the_end() -> None:
    """Also that of tasks whose objects are frozen already."""
    garbage: list[weakref.ref[Node]] = []

    def worker(socket: object, authenticated: bool) -> int:
        garbage.append(weakref.ref(Node()))
        return 0

    work = sparing(worker)
    for _ in range(_TASKS_A_COLLECTION - 1):
        work(None, True)
    assert all(one() is not None for one in garbage)
    for _ in range(_TASKS_A_COLLECTION):
        work(None, True)
    assert all(one() is None for one in garbage[:_TASKS_A_COLLECTION])


def test_what_is_missing_is_no_reason_not_to_start() -> None:
    preload("no_such_module_of_anybody")


def test_workers_find_loaded_what_their_first_task_needs_and_no_thread_runs_yet() -> None:
    """The daemon forks: a thread would not be in its children, but what it had locked would stay locked."""
    code = (
        "import sys, threading; from ottla.spark.daemon import preload; preload('pyspark.worker'); "
        "assert {'pyspark.worker', 'pyarrow', 'ottla.spark.source.tasks'} <= set(sys.modules); "
        "assert threading.active_count() == 1, threading.enumerate()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def spoken_by(module: str) -> tuple[bytes, int]:
    """Spark reads the port of a daemon, connects for each worker, and closes the daemon's standard input in the end.
    What a worker answers to a wrong secret, and how the daemon ends."""
    with subprocess.Popen(
        [sys.executable, "-m", module, "pyspark.worker"],
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "the secret"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        (port,) = struct.unpack("!i", daemon.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            stream = connection.makefile("rwb")
            (worker,) = struct.unpack("!i", stream.read(4))
            assert worker != daemon.pid
            stream.write(struct.pack("!i", 5) + b"wrong")
            stream.flush()
            answer = stream.read()
        daemon.stdin.close()
        return answer, daemon.wait(60)


def test_it_speaks_as_the_daemon_of_spark_does() -> None:
    answer, code = spoken_by("ottla.spark.daemon")
    assert answer == struct.pack("!i", 3) + b"err"
    assert (answer, code) == spoken_by("pyspark.daemon")
