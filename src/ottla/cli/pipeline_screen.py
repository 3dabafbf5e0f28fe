"""What one sees of pipelines that run: a screen that moves, or a line at times where there is no terminal."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ottla.cli.output import Output
from ottla.cli.page.snapshot import Snapshots
from ottla.cli.pipeline_answers import INGESTION, LakeAnswer, answers_of
from ottla.cli.pipeline_layout import Shown, drawn
from ottla.cli.pipeline_states import WAITING, State, states
from ottla.cli.pipeline_tables import seconds_text

if TYPE_CHECKING:
    from rich.live import Live

    from ottla.cli.page.server import PageServer
    from ottla.pipelines.frame.pipeline import Pipeline
    from ottla.pipelines.frame.place import Place
    from ottla.pipelines.frame.progress import Progress
    from ottla.pipelines.frame.results import Results

LINE_SECONDS: Final = 10.0
STARTING: Final = "Spark is starting"


class Lines:
    """One line every ten seconds, for logs; the first at once."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._next = self._began

    def show(
        self, found: "Sequence[Progress]", names: Sequence[str], sent: Mapping[str, int], doing: str = STARTING
    ) -> None:
        """`doing` is said before there are queries."""
        now = self._now()
        if now < self._next:
            return
        self._next = max(self._next + LINE_SECONDS, now)
        told = "; ".join(_told(one) for one in states(names, found)) if found else doing
        events = f" {sum(sent.values()):,} events sent;" if sent else ""
        sys.stdout.write(f"{now - self._began:.0f} s:{events} {told}\n")
        sys.stdout.flush()


def _told(state: State) -> str:
    if state.state in (WAITING, "starting"):
        return f"{state.pipeline} {state.state}"
    behind, delay = seconds_text(state.behind_ms), seconds_text(state.delay_ms)
    figures = [
        f"{state.rows_per_second:.0f} rows/s",
        f"behind {behind}" if behind else f"lag {state.lag}",
        *([f"answers after {delay}"] if delay else []),
    ]
    return f"{state.pipeline} {state.state}, {', '.join(figures)}"


class Screen:
    """Of the demo. On a terminal it moves; elsewhere lines are printed."""

    def __init__(
        self, pipelines: "Sequence[Pipeline]", place: "Place", output: Output, page: "PageServer | None" = None
    ) -> None:
        self._pipelines = pipelines
        self._page = page
        self._snapshots = Snapshots()
        self._output = output
        self._live: Live | None = None
        self._lines = Lines()
        self._lake = LakeAnswer(place) if any(one.name == INGESTION for one in pipelines) else None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(
                console=self._output.console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, found: "list[Progress]", results: "Results", sent: Mapping[str, int], beside: str = "") -> None:
        """`beside` is what goes on beside the pipelines, such as the installation of Spark."""
        names = [one.name for one in self._pipelines]
        if self._live is None:
            self._lines.show(found, names, sent, beside or STARTING)
            if self._page is None:
                return
        shown = [
            Shown(state, sent.get(one.name, 0), answers_of(one, results, self._lake))
            for one, state in zip(self._pipelines, states(names, found), strict=True)
        ]
        seconds = int(time.monotonic() - self._began)
        doing = "Ctrl-C ends" if found else beside or f"{STARTING} ..."
        also = f"; {beside}" if found and beside else ""
        head = f"{seconds} s  {sum(sent.values()):,} events sent  ({doing}{also})"
        if self._page is not None:
            now_ms = time.time_ns() // 1_000_000
            self._page.show(self._snapshots.take(now_ms, head, shown, results.tables))
            head += f"  {self._page.url}"
        if self._live is not None:
            size = self._output.console.size
            self._live.update(drawn(f"Ottla  {head}", shown, size.width, size.height), refresh=True)
