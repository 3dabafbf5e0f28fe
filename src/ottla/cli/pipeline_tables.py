"""How far queries are, as rows of a table: for `ottla pipeline status` and `run`."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.cli.output import Output, size_text

if TYPE_CHECKING:
    from ottla.pipelines.frame.progress import Progress

PROGRESS_COLUMNS: Final = (
    "pipeline",
    "query",
    "state",
    "batch",
    "rows",
    "rows_per_second",
    "lag",
    "behind",
    "delay",
    "batch_ms",
    "memory",
    "left_out",
)
STATUS_COLUMNS: Final = (*PROGRESS_COLUMNS, "reported")
# What a narrow terminal does without.
_DETAILS: Final = ("batch", "rows", "batch_ms", "memory")
_WIDE: Final = 120


def columns_for(output: Output, columns: Sequence[str]) -> list[str]:
    """As many as a terminal of this width shows without folding each of them."""
    is_narrow = output.console.is_terminal and output.console.width < _WIDE
    return [column for column in columns if not (is_narrow and column in _DETAILS)]


def shown(found: "list[Progress]", output: Output) -> list[dict[str, object]]:
    """Rows of a table for people; programs get them as they are."""
    if output.is_json:
        return [one.row() for one in found]
    now_ms = time.time_ns() // 1_000_000
    return [
        {
            **one.row(),
            "behind": seconds_text(one.behind_ms),
            "delay": seconds_text(one.delay_ms),
            "memory": size_text(one.state_bytes) if one.state_bytes else None,
            "left_out": left_out_text(one.dead_letters, one.late, one.dropped),
            "reported": f"{age_text((now_ms - one.at_ms) / 1000)} ago",
        }
        for one in found
    ]


def left_out_text(malformed: int, late: int, dropped: int) -> str:
    counted = ((malformed, "malformed"), (late, "late"), (dropped, "dropped"))
    return ", ".join(f"{count} {what}" for count, what in counted if count)


def seconds_text(duration_ms: int | None) -> str | None:
    """As exact as people want it: `0.4 s`, `12 s`, `5 min`."""
    if duration_ms is None:
        return None
    return f"{duration_ms / 1000:.1f} s" if duration_ms < 9_950 else age_text(duration_ms / 1000)


def age_text(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"
