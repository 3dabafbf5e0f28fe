"""A member of a group, as the programs that the tests drive have it: one consumer on a thread of its own.

The consumer polls all the time, as an application would, and does between two polls what it is told. What it reads, and
what its library tells it of partitions that come and go, is kept until somebody asks.
"""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, ClassVar

POLL_SECONDS = 0.05
ANSWER_SECONDS = 30.0


class Member(ABC):
    """`settings` are words that all libraries know: protocol, reset, auto_commit_ms, instance, assignor and so on."""

    library: ClassVar[str]

    def __init__(self, bootstrap: str, group: str, topic: str, settings: dict[str, str]) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.topic = topic
        self.settings = settings
        self.records: list[tuple[int, int, str]] = []
        self.events: list[tuple[int, str, list[int]]] = []
        self.error = ""
        self._commands: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._hanging = False
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kafka_python_settings(self, strategies: dict[str, Any]) -> dict[str, Any]:
        """The settings in the names of kafka-python, which aiokafka has too."""
        wanted = self.settings
        return {
            "bootstrap_servers": self.bootstrap,
            "group_id": self.group,
            "group_instance_id": wanted["instance"] or None,
            "auto_offset_reset": wanted["reset"],
            "enable_auto_commit": wanted["auto_commit_ms"] != "0",
            "auto_commit_interval_ms": int(wanted["auto_commit_ms"]) or 5000,
            "session_timeout_ms": int(wanted["session_ms"]),
            "heartbeat_interval_ms": int(wanted["heartbeat_ms"]),
            "max_poll_interval_ms": int(wanted["poll_ms"]),
            "partition_assignment_strategy": (strategies[wanted["assignor"]],),
            "isolation_level": wanted["isolation"],
            "metadata_max_age_ms": 500,
            "fetch_max_wait_ms": 50,
        }

    # What a test asks for

    def do(self, work: Callable[[], Any]) -> Any:
        """Have the member's own thread do something between two polls."""
        done: Future[Any] = Future()
        self._commands.put((work, done))
        return done.result(ANSWER_SECONDS)

    def assigned(self) -> list[int]:
        return [] if self.error else sorted(self.do(self.assignment))

    def hang(self, hanging: bool) -> None:
        """Stop polling, or go on; a member that hangs does nothing else either."""
        self._hanging = hanging

    def leave(self) -> None:
        self._over = True
        self._thread.join(ANSWER_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.library} does not close")

    # What a library provides; all of it runs on the member's thread

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def poll(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def assignment(self) -> Iterable[int]: ...

    @abstractmethod
    def commit(self, how: str) -> None: ...

    @abstractmethod
    def committed(self, partition: int) -> int | None: ...

    @abstractmethod
    def seek(self, partition: int, offset: int) -> None: ...

    @abstractmethod
    def offset_at(self, partition: int, timestamp_ms: int) -> int | None: ...

    # What libraries report

    def note(self, what: str, partitions: Iterable[int]) -> None:
        """Partitions were assigned, revoked or lost; the time is one that all processes of a machine share.

        Where a journal is wanted it is written before the library goes on, so it outlives the process.
        """
        event = (time.monotonic_ns(), what, sorted(partitions))
        self.events.append(event)
        if path := self.settings.get("journal"):
            with open(path, "a", encoding="utf-8") as journal:
                journal.write(event_line(*event) + "\n")

    def _run(self) -> None:
        try:
            self.open()
            while not self._over:
                self._obey()
                if self._hanging or self.error:
                    time.sleep(POLL_SECONDS)
                    continue
                self._poll()
        except Exception as problem:
            self.error = describe(problem)
        finally:
            try:
                self.close()
            except Exception as problem:
                self.error = self.error or describe(problem)

    def _poll(self) -> None:
        try:
            self.poll()
        except Exception as problem:
            self.error = describe(problem)

    def _obey(self) -> None:
        while not self._commands.empty():
            work, done = self._commands.get()
            try:
                done.set_result(work())
            except Exception as problem:
                done.set_exception(problem)


def event_line(at_ns: int, what: str, partitions: list[int]) -> str:
    return f"{at_ns}\t{what}\t{','.join(map(str, partitions))}"


def describe(problem: BaseException) -> str:
    return f"{type(problem).__name__} {problem}".replace("\t", " ").replace("\n", " ")
