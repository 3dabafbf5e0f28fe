"""What `ottla pipeline run` does: carries out an order, with made-up events if wanted, and shows how far it is."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.output import Output, table_of
from ottla.cli.output_log import output_to
from ottla.cli.pipeline import DATA
from ottla.cli.pipeline_screen import Lines
from ottla.cli.pipeline_tables import PROGRESS_COLUMNS, columns_for, shown
from ottla.pipelines.frame.order import Order, Tick, carry_out, fed, stopped_by_signals
from ottla.pipelines.frame.place import is_address
from ottla.pipelines.frame.running import Feeder
from ottla.pipelines.frame.session import require_spark

if TYPE_CHECKING:
    from ottla.pipelines.frame.progress import Progress


def run_order(order: Order, output: Output) -> None:
    require_spark()
    data = order.place.data
    log = Path(DATA if is_address(data) else data) / "spark.log"
    with output_to(log), stopped_by_signals() as stop, fed(order) as feeder, _shown(order, feeder, output) as tick:
        carry_out(order, feeder, tick, stop)


@contextlib.contextmanager
def _shown(order: Order, feeder: Feeder, output: Output) -> Iterator[Tick]:
    """A live table on a terminal, JSON every second for programs that want it, a line at times for all others."""
    if output.is_json:

        def print_rows(found: "list[Progress]") -> None:
            output.rows(PROGRESS_COLUMNS, shown(found, output), empty="")
            sys.stdout.flush()

        yield print_rows
        return
    if not sys.stdout.isatty():
        lines, names = Lines(), [one.name for one in order.pipelines]
        yield lambda found: lines.show(found, names, feeder.sent)
        return
    from rich.live import Live

    with Live(console=output.console, auto_refresh=False, redirect_stderr=False) as live:

        def draw(found: "list[Progress]") -> None:
            title = f"{time.strftime('%H:%M:%S')}  " + ("(Ctrl-C ends)" if found else "Spark is starting ...")
            live.update(table_of(columns_for(output, PROGRESS_COLUMNS), shown(found, output), title), refresh=True)

        yield draw
