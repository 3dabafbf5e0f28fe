"""A command that runs beside the demo and brings what it needs, Spark above all.

It prints a line for each step of its progress; after the line `ready` Spark can start. When all pipelines run it gets
an empty line on its standard input, and may go on with what nobody waits for. It is ended with the demo, together with
what it has started.
"""

import contextlib
import importlib
import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.pipelines.frame.telling import PipelineError

READY: Final = "ready"
_GLANCE_SECONDS: Final = 0.2


class PreparationFailed(PipelineError):
    """What is needed could not be brought; the text is what the command said last."""


class Beside:
    """`said` is how far it is; what it says on standard error goes to the log."""

    def __init__(self, command: str, log: Path) -> None:
        self._ready = threading.Event()
        self._may_go_on = False
        self.said = ""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                text=True,
            )
        self._reading = threading.Thread(target=self._read, name="beside", daemon=True)
        self._reading.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        self._reading.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def wait(self, stop: threading.Event) -> None:
        """Until Spark can start, or `stop`. Raises PreparationFailed."""
        while not stop.is_set() and not self._ready.wait(_GLANCE_SECONDS):
            if not self._reading.is_alive() and not self._ready.is_set():
                raise PreparationFailed(self.said or "the command that brings Spark has ended, and did not say why")
        importlib.invalidate_caches()

    def go_on(self) -> None:
        """What nobody waits for can be done now. To say it again changes nothing."""
        if not self._may_go_on and self._process.stdin is not None:
            self._may_go_on = True
            # Where it has ended, there was nothing left.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write("\n")
                self._process.stdin.flush()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            if line.strip() == READY:
                self.said = ""
                self._ready.set()
            else:
                self.said = line.strip()
