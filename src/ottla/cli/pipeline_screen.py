"""The screen of the demo: how far the pipelines are, and what they answer, drawn anew every second."""

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.cli.output import Output, table_of
from ottla.pipelines.frame.results import in_order

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from ottla.pipelines.frame.pipeline import Pipeline, View
    from ottla.pipelines.frame.progress import Progress
    from ottla.pipelines.frame.results import Results, Table

_PIPELINE_COLUMNS = ("pipeline", "queries", "sent", "rows_per_second", "lag", "batch_ms", "dead_letters", "late")
_VIEWS_ABREAST = 2
_FEWEST_ROWS = 3
# Of a table: its title, its head, and what separates it from the next.
_FRAME_LINES = 3
_TIMES = ("_start", "_end", "_at", "_time")
_EARLIEST_TIME_MS = 1_000_000_000_000


class Screen:
    """On a terminal the tables move; elsewhere a line is printed now and then."""

    def __init__(self, pipelines: "Sequence[Pipeline]", output: Output) -> None:
        self._pipelines = pipelines
        self._output = output
        self._live: Live | None = None
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

    def show(self, found: "list[Progress]", results: "Results", sent: Mapping[str, int]) -> None:
        if self._live is not None:
            self._live.update(self._drawn(found, results, sent), refresh=True)
            return
        seconds = int(time.monotonic() - self._began)
        rows = ", ".join(f"{one.key} {one.rows_per_second:.0f}/s lag {one.lag}" for one in found) or "Spark is starting"
        sys.stdout.write(f"{seconds} s: {sum(sent.values())} events sent; {rows}\n")
        sys.stdout.flush()

    def _drawn(self, found: "list[Progress]", results: "Results", sent: Mapping[str, int]) -> "Group":
        from rich.columns import Columns
        from rich.console import Group
        from rich.text import Text

        seconds = int(time.monotonic() - self._began)
        state = "Spark is starting ..." if not found else "Ctrl-C ends"
        head = Text(f"Ottla  {seconds} s  {sum(sent.values()):,} events sent  ({state})", style="bold")
        pipelines = table_of(_PIPELINE_COLUMNS, [self._row(one, found, results, sent) for one in self._pipelines])
        shown = [view for one in self._pipelines for view in one.views]
        most = self._rows_for(len(shown))
        views = [self._view(view, results.tables[view.topic], most) for view in shown]
        return Group(head, pipelines, Columns(views, padding=(1, 3)))

    def _rows_for(self, views: int) -> int:
        """As many of each table as the terminal has room for."""
        above = 2 + len(self._pipelines)
        lines = (self._output.console.height - above) // max(-(-views // _VIEWS_ABREAST), 1)
        return max(lines - _FRAME_LINES, _FEWEST_ROWS)

    def _row(
        self, pipeline: "Pipeline", found: "list[Progress]", results: "Results", sent: Mapping[str, int]
    ) -> dict[str, object]:
        """All queries of a pipeline as one: what is behind adds up, the slowest batch is told."""
        queries = [one for one in found if one.pipeline == pipeline.name]
        running = sum(one.state == "running" for one in queries)
        return {
            "pipeline": pipeline.name,
            "queries": f"{running} of {len(pipeline.queries)} run",
            "sent": sent.get(pipeline.name, 0),
            "rows_per_second": round(sum(one.rows_per_second for one in queries), 1),
            "lag": sum(one.lag or 0 for one in queries),
            "batch_ms": max((one.batch_ms for one in queries), default=0),
            "dead_letters": results.counts[pipeline.dead_letters.name],
            "late": results.counts[pipeline.late.name],
        }

    def _view(self, view: "View", table: "Table", most: int) -> Any:
        first = [table[key] for key in in_order(table, view)[: min(view.rows, most)]]
        shown = [{name: _cell(name, row.get(name)) for name in view.columns} for row in first]
        return table_of(view.columns, shown, view.title)


def _cell(name: str, value: object) -> object:
    if isinstance(value, int) and name.endswith(_TIMES) and value > _EARLIEST_TIME_MS:
        return datetime.fromtimestamp(value / 1000).strftime("%H:%M:%S")
    return f"{value:.3g}" if isinstance(value, float) else value
