"""The table on the terminal, and how figures are written everywhere."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from bench.results import Outcome, Results
from bench.rows import KAFKA, OTTLA, TITLES

_NOTHING = "-"


def figure(value: float | None, unit: str) -> str:
    """Three significant digits and the unit: 72.3 k req/s, 1.42 GB/s, 0.17 ms."""
    if value is None:
        return _NOTHING
    if unit in ("req/s", "rec/s"):
        if value >= 1e6:
            return f"{value / 1e6:.3g} M {unit}"
        if value >= 1e4:
            return f"{value / 1e3:.3g} k {unit}"
        return f"{value:,.0f} {unit}"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def side(outcome: Outcome, name: str, value: float | None) -> str:
    """A figure, with the name of what it belongs to where that is not what the column says."""
    text = figure(value, outcome.row.unit)
    return text if name in TITLES else f"{text} ({name})"


def ratio_text(ratio: float | None) -> str:
    if ratio is None:
        return _NOTHING
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.2f}x"


def verdict(met: bool | None) -> str:
    return {True: "met", False: "missed", None: ""}[met]


def print_report(outcomes: list[Outcome], results: Results, console: Console) -> None:
    table = Table(title="Ottla beside Apache Kafka (medians; a ratio above 1 is better for Ottla)")
    table.add_column("work")
    for title in (TITLES[KAFKA], TITLES[OTTLA], "ratio", "goal"):
        table.add_column(title, justify="right")
    table.add_column("")
    for outcome in outcomes:
        color = {True: "green", False: "red", None: "default"}[outcome.met]
        table.add_row(
            outcome.row.title,
            side(outcome, outcome.row.baseline, outcome.baseline_median),
            side(outcome, outcome.row.candidate, outcome.candidate_median),
            f"[{color}]{ratio_text(outcome.ratio)}[/]",
            outcome.row.described_goal,
            f"[{color}]{verdict(outcome.met)}[/]",
            end_section=False,
        )
    console.print(table)
    units = {outcome.row.key: outcome.row.unit for outcome in outcomes}
    for key, value in results.limits.items():
        console.print(f"limit of the driver, {key}: {figure(value, units.get(key, ''))}", highlight=False)
    for failure in results.failures:
        console.print(f"[red]failed[/red] {failure}", highlight=False)
