"""What the page says of the pipelines beside the rows: each of them in figures, and the launch day as a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.report import figure
from bench.rows import PIPELINES

PLOT_NAME = "launch_day.png"
_ALONE, _LAUNCH, _KILLED = "pipelines.alone.", "pipelines.launch.peak", "pipelines.load.before"
_SHADE = "#d9b44a"
_COLORS = {"totals": "#2a7f62", "scores": "#b5483a", "trending": "#4a6fb5", "rejects": "#6b7a8f"}


def pipelines_part(content: dict[str, Any]) -> list[str]:
    """Lines for the page; none where no pipeline was measured."""
    runs = content.get("runs", [])
    alone = {run["row"].removeprefix(_ALONE): run for run in runs if run["row"].startswith(_ALONE)}
    lines: list[str] = []
    if alone:
        lines += [
            "| pipeline | events | state, rows | state, memory | batch, median | batch, slowest |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        lines += [_line(title, alone[name]) for name, title in PIPELINES.items() if name in alone]
        lines.append("")
    for run in _of(runs, _LAUNCH):
        lines += [_launch_day(run), "", f"![Lag of the queries of MySocialMedia over time]({PLOT_NAME})", ""]
    for run in _of(runs, _KILLED):
        lines += [_killed_load(run), ""]
    return lines


def _of(runs: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [run for run in runs if run["row"] == key][-1:]


def _line(title: str, run: dict[str, Any]) -> str:
    cells = (
        title,
        figure(run["rate"], "rec/s").removesuffix(" rec/s") + " a second",
        f"{run['state_rows']:,}",
        figure(run["state_bytes"] / 1e6, "MB"),
        figure(run["batch_ms"] / 1000, "s"),
        figure(run["slowest_batch_ms"] / 1000, "s"),
    )
    return f"| {' | '.join(cells)} |"


def _launch_day(run: dict[str, Any]) -> str:
    return (
        f"Launch day: {run['rate']:,} events a second, and fifty times as many for {run['burst_seconds']} s. Queries "
        f"were up to {run['usual_lag']:,} events behind before, then up to {run['peak_lag']:,}, and back again "
        f"{run['drained_seconds']:.0f} s after the burst."
    )


def _killed_load(run: dict[str, Any]) -> str:
    before, after = run["records_before"], run["records_after"]
    return (
        f"Offline load: killed (SIGKILL) after {run['seconds_before']:.1f} s, with {before:,} of {before + after:,} "
        f"records in the lake; started again it took {run['seconds_after']:.1f} s for the other {after:,}. Both have "
        "the start of Spark in them. No range was loaded twice, and every record is there once: "
        f"{run['files']} files, {run['bytes'] / 1e6:,.0f} MB."
    )


def draw_launch_day(content: dict[str, Any], path: Path) -> None:
    """The lag of each query, second by second, with the burst as a shade."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for run in _of(content.get("runs", []), _LAUNCH):
        samples = run["samples"]
        seconds = [one["second"] for one in samples]
        figure_, axes = pyplot.subplots(figsize=(10, 4), layout="constrained")
        axes.axvspan(0, run["burst_seconds"], color=_SHADE, alpha=0.3, linewidth=0, label="fifty times as much")
        for query, color in _COLORS.items():
            lags = [one["lags"].get(query, 0) for one in samples]
            axes.plot(seconds, lags, color=color, linewidth=1.4, label=query)
        axes.axvline(run["burst_seconds"] + run["drained_seconds"], color="black", linewidth=1.0, linestyle="--")
        axes.set_xlabel("seconds since the burst began (dashed: drained)")
        axes.set_ylabel("records behind")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _position: f"{value / 1000:g} k" if value else "0")
        axes.set_title("MySocialMedia on its launch day: lag of its queries", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        figure_.savefig(path, dpi=130)
        pyplot.close(figure_)
