"""What commands print: tables for people, JSON lines for programs. One thing is one row, or one line.

Results go to standard output, all else to standard error.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Row = Mapping[str, object]

_NUMBERS = {"partitions", "replicas", "partition", "offset", "lag", "committed", "end", "start", "members", "size"}


class Output:
    def __init__(self, is_json: bool = False) -> None:
        self.is_json = is_json
        self._console: Console | None = None

    @property
    def console(self) -> "Console":
        """For people; made when it is first needed, since loading it takes a while."""
        if self._console is None:
            from rich.console import Console

            # Without a file of its own it prints to what is standard output at that time.
            self._console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        return self._console

    def line(self, data: Row) -> None:
        sys.stdout.write(json.dumps(data, default=_plain, ensure_ascii=False) + "\n")

    def rows(self, columns: Sequence[str], rows: Iterable[Row], *, empty: str, title: str | None = None) -> None:
        """A row is printed with these columns as a table, and whole as JSON."""
        listed = list(rows)
        if self.is_json:
            for row in listed:
                self.line(row)
            return
        if not listed:
            self.note(empty)
            return
        self.console.print(table_of(columns, listed, title))

    def facts(self, data: Row) -> None:
        """One thing: a name and a value a line."""
        if self.is_json:
            self.line(data)
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in data.items():
            table.add_row(name.replace("_", " "), Text(text_of(value)))
        self.console.print(table)

    def done(self, data: Row, text: str) -> None:
        """Something was done: a line in green, or its JSON."""
        if self.is_json:
            self.line(data)
        else:
            self.console.print(text, style="green", markup=False)

    def note(self, text: str) -> None:
        """For the person in front of the screen."""
        if not self.is_json:
            sys.stderr.write(f"{text}\n")

    def tell(self, text: str) -> None:
        """What the user should know while the command goes on, also where a program reads its output."""
        sys.stderr.write((json.dumps({"note": text}, ensure_ascii=False) if self.is_json else text) + "\n")
        sys.stderr.flush()


def write_all(stream: BinaryIO, content: bytes) -> None:
    """Standard output without a buffer (PYTHONUNBUFFERED) may take a part and leave the rest, as when its reader goes
    away in the middle: the rest is what fails then."""
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]


def table_of(columns: Sequence[str], rows: Iterable[Row], title: str | None = None) -> "Table":
    """Texts fold where the screen is narrow; numbers do not: half of one is another number."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, title=title, title_justify="left", header_style="bold", padding=(0, 2, 0, 0))
    listed = list(rows)
    for column in columns:
        is_right = column in _NUMBERS
        table.add_column(
            column.replace("_", " "),
            justify="right" if is_right else "left",
            overflow="fold",
            min_width=max((len(str(row[column])) for row in listed if isinstance(row.get(column), int)), default=None),
        )
    for row in listed:
        table.add_row(*(Text(text_of(row.get(column)), style=_style(column, row.get(column))) for column in columns))
    return table


def _style(column: str, value: object) -> str:
    if column == "lag" and isinstance(value, int):
        return "green" if value == 0 else "yellow"
    if column == "error" and value:
        return "red"
    return ""


def text_of(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text_of(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ",".join(text_of(one) for one in value)
    return str(value)


def size_text(size_bytes: int) -> str:
    """A number of bytes as people say it."""
    if size_bytes < 0:
        return "-"
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _plain(value: object) -> Any:
    if isinstance(value, frozenset | set):
        return sorted(value)
    return str(value)
