"""One server process: started, watched until ready, stopped or killed, and never left behind.

What must stay true: only processes started here are signalled, by pid; a server that outlives its test is ended when
the interpreter exits; whatever the server printed is in `log_path`, so that a failure can show it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Self

from tests.peers.ports import LOOPBACK

_POLL_SECONDS = 0.005


class ServerFailed(RuntimeError):
    """The server ended or stayed silent when it should have become ready; carries the end of its log."""


class ServerProcess(ABC):
    """A broker under `directory`: configuration and log beside it, data in `data_directory`.

    `start` after `stop` or `kill` brings it back on the same directory and the same port.
    """

    name = "server"
    alive: ClassVar[list[ServerProcess]] = []
    start_timeout_seconds = 120.0
    stop_timeout_seconds = 30.0

    def __init__(self, directory: Path, port: int | None = None, properties: dict[str, str] | None = None) -> None:
        self.directory = Path(directory)
        self.port = port
        self.properties = dict(properties or {})
        self.data_directory = self.directory / "data"
        self.log_path = self.directory / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def bootstrap(self) -> str:
        """What a client takes as bootstrap servers."""
        if self.port is None:
            raise RuntimeError(f"{self.name} has no port yet: start it first")
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def partition_directory(self, topic: str, partition: int) -> Path:
        return self.data_directory / f"{topic}-{partition}"

    def start(self) -> Self:
        """Start and wait until clients can use it."""
        if self.running:
            raise RuntimeError(f"{self.name} runs already as pid {self.pid}")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment()
            )
        atexit.register(self.kill)
        self.alive.append(self)
        self._wait_until_ready()
        return self

    def stop(self) -> int:
        """Ask it to end (SIGTERM), wait, answer its exit code. A server that ignores this is killed and reported."""
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(self.stop_timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(self.describe(f"did not end within {self.stop_timeout_seconds} s of SIGTERM")) from None
        self._forget()
        return code

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL); nothing happens when it does not run."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        self._forget()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Have it do nothing at all during the block (SIGSTOP); what it is asked meanwhile it answers afterwards."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        # The signal was sent; what the process was at, it may still be doing.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def resident_bytes(self) -> int:
        """Memory of the process that is in RAM now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def log_tail(self, lines: int = 60) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def describe(self, what: str) -> str:
        return f"{self.name} {what}; the end of {self.log_path}:\n{self.log_tail()}"

    @abstractmethod
    def prepare(self) -> None:
        """Write what the process reads at start."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command line of the process."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether clients can use it now."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def log_since_start(self) -> str:
        """What the process printed since its last start."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if not self.running:
            self.kill()
            return
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._process

    def _forget(self) -> None:
        self._process = None
        self.alive.remove(self)
        atexit.unregister(self.kill)

    def _wait_until_ready(self) -> None:
        process = self._running()
        deadline = time.monotonic() + self.start_timeout_seconds
        while not self.is_ready():
            if process.poll() is not None:
                self._forget()
                raise ServerFailed(self.describe(f"ended with code {process.returncode} before it was ready"))
            if time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(self.describe(f"was not ready after {self.start_timeout_seconds} s"))
            time.sleep(_POLL_SECONDS)
