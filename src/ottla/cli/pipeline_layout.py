"""The screen of the demo for a terminal of any size: every pipeline has its state and an answer on it.

| room                                     | what is drawn                                                             |
|------------------------------------------|---------------------------------------------------------------------------|
| for two rows of each table               | the states, and below them the tables, abreast where the screen is wide   |
| else                                     | a line for the state of each pipeline, and its answers as sentences below |

A thing is one line: where it is longer than the screen is wide it ends in `…`. So what is drawn is never higher than
the screen, and nothing that is below its end gets lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.cli.output import text_of
from ottla.cli.pipeline_answers import Answer
from ottla.cli.pipeline_states import State
from ottla.cli.pipeline_tables import seconds_text

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

# Of a table: its title and its head.
_TABLE_LINES: Final = 2
_FEWEST_ROWS: Final = 2
_COLUMN_WIDTH: Final = 72
_GAP: Final = 2
_OLD_MS: Final = 60_000
_STYLES: Final = {"running": "green", "failed": "bold red", "silent": "red", "ended": "dim"}
NO_ANSWER: Final = "no answer yet"
_INDENT: Final = "   "


@dataclass(frozen=True)
class Shown:
    """What is on the screen of each pipeline."""

    state: State
    sent: int
    answers: Sequence[Answer]


def drawn(head: str, pipelines: Sequence[Shown], width: int, height: int) -> "Group":
    from rich.console import Group

    columns = max(width // _COLUMN_WIDTH, 1)
    answers = [answer for one in pipelines for answer in one.answers]
    # The last line is the cursor's.
    left = height - 3 - len(pipelines)
    rows = left // max(-(-len(answers) // columns), 1) - _TABLE_LINES
    if rows >= _FEWEST_ROWS:
        return Group(_line(head, "bold"), _states(pipelines), _tables(answers, columns, rows, width))
    return Group(_line(head, "bold"), *_compact(pipelines, height - 2))


# Where tables have room


def _states(pipelines: Sequence[Shown]) -> "Table":
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("pipeline", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for title in ("sent", "rows per second", "lag", "behind", "delay", "batch", "malformed", "late", "dropped"):
        table.add_column(title, no_wrap=True, justify="right")
    for one in pipelines:
        state = one.state
        table.add_row(
            state.pipeline,
            _state_text(state),
            f"{one.sent:,}",
            f"{state.rows_per_second:.1f}",
            _count(state.lag),
            _behind_text(state),
            seconds_text(state.delay_ms) or "-",
            (seconds_text(state.batch_ms) or "-") if state.batch_ms else "-",
            *(f"{count:,}" for count in (state.malformed, state.late, state.dropped)),
        )
    return table


def _tables(answers: Sequence[Answer], columns: int, rows: int, width: int) -> "RenderableType":
    """Column by column, so that what belongs together is one below the other."""
    from rich.console import Group
    from rich.table import Table

    height = -(-len(answers) // columns)
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    room = width // columns - _GAP
    for _ in range(columns):
        grid.add_column(width=room, no_wrap=True)
    stacks = [answers[begin : begin + height] for begin in range(0, len(answers), height)] if answers else []
    grid.add_row(*(Group(*(_table(answer, rows, room) for answer in stack)) for stack in stacks))
    return grid


def _table(answer: Answer, rows: int, room: int) -> "RenderableType":
    """As sentences where its columns do not fit."""
    from rich.console import Group
    from rich.table import Table

    title = _line(answer.title, "bold cyan")
    shown = answer.rows[:rows]
    cells = [[text_of(row.get(name)) for name in answer.columns] for row in shown]
    heads = [name.replace("_", " ") for name in answer.columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    if not shown:
        return Group(title, _line(f"{_INDENT}{NO_ANSWER}", "dim"), *(_line("") for _ in range(rows)))
    if sum(widths) + _GAP * len(widths) > room:
        lines = [_line(_INDENT + text) for text in answer.sentences[: rows + 1]]
    else:
        table = Table(box=None, header_style="bold", padding=(0, _GAP, 0, 0))
        for number, head in enumerate(heads):
            is_number = all(isinstance(row.get(answer.columns[number]), int) for row in shown)
            table.add_column(head, no_wrap=True, justify="right" if is_number else "left")
        for row in cells:
            table.add_row(*row)
        return Group(title, table, *(_line("") for _ in range(rows - len(shown))))
    return Group(title, *lines, *(_line("") for _ in range(rows + 1 - len(lines))))


# Where they have none


def _compact(pipelines: Sequence[Shown], height: int) -> "list[Text]":
    """As many lines of answers for each as there is room."""
    most = max((height - 1 - len(pipelines)) // max(len(pipelines), 1), 1)
    spare = max(height - 1 - len(pipelines) * (1 + most), 0)
    lines = [_line(_compact_line("pipeline", "state", "sent", "rows/s", "lag", "behind", "delay", "left out"), "bold")]
    for one in pipelines:
        state = one.state
        left_out = state.malformed + state.late + state.dropped
        text = _compact_line(
            state.pipeline,
            state.state,
            f"{one.sent:,}",
            f"{state.rows_per_second:.0f}",
            _count(state.lag),
            seconds_text(state.behind_ms) or "-",
            seconds_text(state.delay_ms) or "-",
            f"{left_out:,}",
        )
        line = _line(text)
        line.stylize(_STYLES.get(state.state, "yellow"), _NAME_WIDTH, _NAME_WIDTH + _STATE_WIDTH)
        sentences = chosen_sentences(one.answers, most + (1 if spare else 0))
        spare -= len(sentences) > most
        lines += [line, *(_line(_INDENT + text, "" if one.answers else "dim") for text in sentences)]
    return lines


_NAME_WIDTH: Final = 15
_STATE_WIDTH: Final = 9


def _compact_line(name: str, state: str, *figures: str) -> str:
    return f"{name:<{_NAME_WIDTH}}{state:<{_STATE_WIDTH}}" + "".join(
        f"{figure:>{width}}" for figure, width in zip(figures, (9, 8, 9, 9, 9, 10), strict=True)
    )


def chosen_sentences(answers: Sequence[Answer], count: int) -> list[str]:
    """The first sentence of each answer, then the second of each, as many as there is room, and told in the order of
    the answers."""
    ranked = [
        (rank, number, text) for number, answer in enumerate(answers) for rank, text in enumerate(answer.sentences)
    ]
    chosen = sorted(sorted(ranked)[:count], key=lambda one: (one[1], one[0]))
    return [text for _, _, text in chosen] or [NO_ANSWER]


def _state_text(state: State) -> "Text":
    return _line(state.state, _STYLES.get(state.state, "yellow"))


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _behind_text(state: State) -> "Text":
    is_old = state.behind_ms is not None and state.behind_ms > _OLD_MS
    return _line(seconds_text(state.behind_ms) or "-", "yellow" if is_old else "")


def _line(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
