"""What `ottla pipeline demo` does: a broker, generators, pipelines and a screen, all stopped together.

What others need ends after them: generators, queries, broker. The broker is a process with a session of its own, so
that Ctrl-C reaches this process alone.
"""

import contextlib
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.output import Output
from ottla.cli.output_log import output_to
from ottla.cli.page.server import PageServer, require_library
from ottla.cli.pipeline_beside import Beside
from ottla.cli.pipeline_screen import Screen
from ottla.cli.pipeline_states import states
from ottla.cli.running import CommandFailed
from ottla.pipelines.frame.order import Order, carry_out, fed, stopped_by_signals
from ottla.pipelines.frame.place import Begin, Place
from ottla.pipelines.frame.progress import RUNNING
from ottla.pipelines.frame.results import Results
from ottla.pipelines.frame.session import require_spark

if TYPE_CHECKING:
    from ottla.pipelines.frame.job import AnyQuery
    from ottla.pipelines.frame.pipeline import Pipeline
    from ottla.pipelines.frame.progress import Progress

_BROKER_LOG, _INSTALL_LOG = "broker.log", "install.log"
_STOP_SECONDS = 30.0
_EVERY = "1 second"
# Where several share a few cores, less often is sooner. Spark begins micro-batches when the clock shows a multiple of
# the time between them, and so all at the same moment, where each waits for the others. Taking turns, the last one has
# to be done when the first begins again. With times of their own they would meet by and by, and for many batches.
_EVERY_OF_SEVERAL_MS = 2200
# A micro-batch costs about as much with many events as with few, so with many there is one less often.
_EVERY_OF_MANY_EVENTS_MS, _MANY_EVENTS_A_SECOND = 4000, 300
_BEGUN_WITHIN = 0.6
SPARK_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "768m",
    # Both compilers of the JVM: the second costs 0.1 s a second in the first minutes, and saves 0.2 from then on. Six
    # pipelines need more room for what is compiled than there is otherwise.
    "spark.driver.extraJavaOptions": (
        "-XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"
    ),
}


def _side_by_side(pipelines: "Sequence[Pipeline]", rate: float | None) -> "list[Pipeline]":
    """With the same pace for all queries, and one after the other: those that run all the time would leave none of it
    to the others."""
    has_many = rate is not None and rate > _MANY_EVENTS_A_SECOND
    every_ms = _EVERY_OF_MANY_EVENTS_MS if has_many else _EVERY_OF_SEVERAL_MS
    step_ms = int(_BEGUN_WITHIN * every_ms) // sum(len(one.queries) for one in pipelines)
    turns = itertools.count()

    def paced(query: "AnyQuery") -> "AnyQuery":
        phase = f"{next(turns) * step_ms}ms of {every_ms}ms"
        return replace(query, every=f"{every_ms} milliseconds", phase=phase)

    return [replace(one, queries=tuple(map(paced, one.queries))) for one in pipelines]


class Demo:
    """`rate` is how many events a second are sent in all; `beside` is a command that brings Spark (`Beside`)."""

    def __init__(
        self,
        pipelines: "Sequence[Pipeline]",
        data: Path,
        port: int,
        seconds: float | None = None,
        rate: float | None = None,
        beside: str | None = None,
        *,
        has_page: bool = False,
        begin: Begin | None = None,
    ) -> None:
        self._pipelines = pipelines if len(pipelines) == 1 else _side_by_side(pipelines, rate)
        self._data = data
        self._port = port
        self._beside = beside
        self._has_page = has_page
        place = Place(f"localhost:{port}", data / "pipelines", begin=begin)
        self._order = Order(
            self._pipelines,
            place,
            settings=SPARK_SETTINGS,
            every=_EVERY,
            seconds=seconds,
            is_fed=True,
            rate_in_all=rate,
        )

    def run(self, output: Output) -> None:
        if self._beside is None:
            require_spark()
            if self._has_page:
                require_library()
        log = self._data / "spark.log"
        with (
            output_to(log),
            stopped_by_signals() as stop,
            self._preparation() as beside,
            self._broker(),
            fed(self._order) as feeder,
            self._results() as results,
            self._page() as page,
            Screen(self._pipelines, self._order.place, output, page) as screen,
        ):
            names = [one.name for one in self._pipelines]

            def tick(found: "list[Progress]") -> None:
                results.update()
                screen.show(found, results, feeder.sent, beside.said if beside else "")
                if beside is not None and all(one.state == RUNNING for one in states(names, found)):
                    beside.go_on()

            carry_out(replace(self._order, before_spark=beside.wait if beside else None), feeder, tick, stop)
        output.note(f"stopped; start it again to go on from here, or remove {self._data} to begin anew")

    def _page(self) -> "contextlib.AbstractContextManager[PageServer | None]":
        return PageServer() if self._has_page else contextlib.nullcontext()

    def _preparation(self) -> "contextlib.AbstractContextManager[Beside | None]":
        return contextlib.nullcontext() if self._beside is None else Beside(self._beside, self._data / _INSTALL_LOG)

    @contextlib.contextmanager
    def _broker(self) -> Iterator[None]:
        self._data.mkdir(parents=True, exist_ok=True)
        command = ["broker", "--data", str(self._data / "broker"), "--port", str(self._port)]
        with (
            (self._data / _BROKER_LOG).open("ab") as log,
            subprocess.Popen(
                [sys.executable, "-m", "ottla", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                text=True,
            ) as process,
        ):
            try:
                line = process.stdout.readline() if process.stdout else ""
                if "ready" not in line:
                    raise CommandFailed(f"the broker did not start: {self._last_words()}")
                yield
            finally:
                process.terminate()
                process.wait(_STOP_SECONDS)

    def _results(self) -> Results:
        return Results(
            self._order.place.brokers,
            views=[view for one in self._pipelines for view in one.views],
        )

    def _last_words(self) -> str:
        lines = (self._data / _BROKER_LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1].removeprefix("ottla: ") if lines else "it did not say why"
