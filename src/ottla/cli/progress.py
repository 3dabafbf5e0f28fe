"""A progress bar on standard error, for the person in front of a terminal; silent for everybody else."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """`total` is None where nobody knows how much there is. What is done counts in the unit of the total; records are
    told beside it."""

    def __init__(self, label: str, total: int | None, *, is_quiet: bool = False) -> None:
        self._label = label
        self._total = total
        self._is_shown = not is_quiet and sys.stderr.isatty()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self.records = 0

    def __enter__(self) -> Self:
        if self._is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[records]:,} records"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._progress.start()
            self._task = self._progress.add_task(self._label, total=self._total, records=0)
        return self

    def advance(self, done: int, records: int) -> None:
        self.records += records
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=done, records=self.records)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
