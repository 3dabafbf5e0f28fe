"""The tables of results in docs/FUZZ.md: one row for each run, and one for each target of a run."""

from datetime import datetime
from pathlib import Path

from tests.fuzz.campaign import MEBIBYTE, Outcome
from tests.fuzz.guided_process import Report

END_OF_RUNS = "<!-- the next run is added above this line -->"
END_OF_TARGETS = "<!-- the targets of the next run are added above this line -->"


def run_row(date: datetime, outcome: Outcome, report: Report, problems: int) -> str:
    counts = outcome.counts
    _, p99, worst = outcome.latency_seconds
    return _row(
        f"{date:%Y-%m-%d %H:%M}",
        str(outcome.seed),
        f"{outcome.seconds:.0f}",
        f"{report.total('executions'):,}",
        f"{report.total('corpus'):,}",
        f"{counts.requests:,}",
        f"{outcome.replayed:,}",
        f"{counts.closed_by_broker:,}",
        _memory(outcome.memory_before_bytes, outcome.memory_after_bytes),
        _memory(report.memory_before_bytes, report.memory_after_bytes),
        f"{outcome.served:,}",
        f"{p99 * 1000:.0f} / {worst * 1000:.0f}",
        f"{problems} findings" if problems else "nothing found",
    )


def target_rows(date: datetime, report: Report) -> list[str]:
    return [
        _row(
            f"{date:%Y-%m-%d %H:%M}",
            name,
            f"{state['executions']:,}",
            f"{state['edges']:,}",
            f"{state['corpus']:,}",
            f"{state['most_steps']:,}",
            str(state["findings"]),
        )
        for name, state in report.states.items()
    ]


def add_results(page: Path, date: datetime, outcome: Outcome, report: Report, problems: int) -> None:
    text = page.read_text(encoding="utf-8")
    text = _insert(text, END_OF_RUNS, [run_row(date, outcome, report, problems)])
    page.write_text(_insert(text, END_OF_TARGETS, target_rows(date, report)), encoding="utf-8")


def _insert(text: str, marker: str, rows: list[str]) -> str:
    """Tables end with an empty line before the marker, so that the comment is none of their rows."""
    before, found, after = text.partition(f"\n{marker}")
    if not found:
        raise ValueError(f"the page has no line {marker!r}")
    return before + "".join(f"{row}\n" for row in rows) + found + after


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _memory(before_bytes: int, after_bytes: int) -> str:
    return f"{before_bytes / MEBIBYTE:.0f} to {after_bytes / MEBIBYTE:.0f} MiB"
