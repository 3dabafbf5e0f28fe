"""The page in `docs/`: a table and a plot between two markers, written by the tool; the words around them are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.peers.paths import REPOSITORY

from bench.pipelines_part import PLOT_NAME as LAUNCH_DAY_PLOT
from bench.pipelines_part import draw_launch_day, pipelines_part
from bench.report import figure, ratio_text, side, verdict
from bench.results import Outcome
from bench.rows import KAFKA, OTTLA, TITLES

PAGE = REPOSITORY / "docs" / "BENCHMARKS.md"
PLOT = REPOSITORY / "docs" / "benchmarks.png"

BEGIN = "<!-- begin: written by python -m bench -->"
END = "<!-- end: written by python -m bench -->"

_MET, _MISSED, _PLAIN = "#2a7f62", "#b5483a", "#6b7a8f"


class MissingMarkersError(RuntimeError):
    """The page exists but has no place for the table."""


def write_document(content: dict[str, Any], outcomes: list[Outcome], page: Path = PAGE, plot: Path = PLOT) -> None:
    """Put table and plot of one kept run into the page."""
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise MissingMarkersError(f"{page.name} needs the lines {BEGIN} and {END} around the place of the table")
    page.write_text(f"{before}{BEGIN}\n{generated(content, outcomes, plot.name)}{END}{after}")
    draw(outcomes, plot)
    draw_launch_day(content, plot.with_name(LAUNCH_DAY_PLOT))


def _again(name: str, run: dict[str, Any]) -> str:
    return f"{name} ({run['date']}, {run['seconds'] / 60:.0f} minutes{_withheld(run)})"


def _withheld(run: dict[str, Any]) -> str:
    """How much of the processors' time a virtual machine asked for and did not get."""
    return f", {run['stolen']:.1%} of processor time withheld by the host" if "stolen" in run else ""


def generated(content: dict[str, Any], outcomes: list[Outcome], plot_name: str) -> str:
    machine = content["machine"]
    later = content.get("measured_later", {})
    again = ", ".join(_again(name, run) for name, run in later.items())
    lines = [
        f"Measured on {content['date']}: {machine['cores']} cores ({machine['processor']}),",
        f"{machine['memory_gib']} GiB, {machine['system']}, Python {machine['python']}, Java {machine['java']};",
        f"Ottla {machine['ottla']}, Apache Kafka {machine['kafka']} (1 GB heap),",
        f"confluent-kafka {machine['confluent-kafka']}. Medians of {content['rounds']} runs;",
        f"the whole run took {content['seconds'] / 60:.0f} minutes{_withheld(content)}.",
        *([f"Measured again, in runs of their own: {again}."] if again else []),
        "",
        f"| work | {TITLES[KAFKA]} | {TITLES[OTTLA]} | ratio | goal | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for outcome in outcomes:
        row = outcome.row
        cells = (
            row.title,
            side(outcome, row.baseline, outcome.baseline_median),
            side(outcome, row.candidate, outcome.candidate_median),
            ratio_text(outcome.ratio),
            row.described_goal,
            verdict(outcome.met),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"![Ratios of the table as bars]({plot_name})", ""]
    lines += pipelines_part(content)
    units = {outcome.row.key: outcome.row.unit for outcome in outcomes}
    limits = [f"{key} {figure(value, units.get(key, ''))}" for key, value in content["limits"].items()]
    if limits:
        lines += [f"Limit of the driver, measured against a sink that only counts bytes: {'; '.join(limits)}.", ""]
    lines += [f"Failed: {failure.splitlines()[0]}\n" for failure in content["failures"]]
    return "\n".join(lines)


def draw(outcomes: list[Outcome], path: Path) -> None:
    """Ratios as bars on a logarithmic axis, with a line where both are equal and a mark at each goal."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [outcome for outcome in reversed(outcomes) if outcome.ratio]
    ratios = [outcome.ratio or 0.0 for outcome in shown]
    colors = [{True: _MET, False: _MISSED, None: _PLAIN}[outcome.met] for outcome in shown]
    figure_, axes = pyplot.subplots(figsize=(10, 0.36 * len(shown) + 1.6), layout="constrained")
    starts = [min(1.0, ratio) for ratio in ratios]
    axes.barh(range(len(shown)), [max(1.0, ratio) - min(1.0, ratio) for ratio in ratios], 0.7, starts, color=colors)
    for position, ratio in enumerate(ratios):
        axes.annotate(
            ratio_text(ratio),
            (ratio, position),
            xytext=(4 if ratio >= 1 else -4, 0),
            textcoords="offset points",
            ha="left" if ratio >= 1 else "right",
            va="center",
            fontsize=8,
        )
    for position, outcome in enumerate(shown):
        if outcome.row.goal is not None:
            axes.plot([outcome.row.goal] * 2, [position - 0.42, position + 0.42], color="black", linewidth=1.6)
    axes.axvline(1.0, color="black", linewidth=1.0, linestyle="--")
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, *ratios) * 0.8, max(2.0, *ratios) * 1.6)
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_xticks([0.5, 1, 2, 5, 10, 20, 50], labels=["0.5x", "1x", "2x", "5x", "10x", "20x", "50x"])
    axes.minorticks_off()
    axes.set_yticks(range(len(shown)), labels=[outcome.row.title for outcome in shown], fontsize=8)
    axes.set_title("Ottla beside Apache Kafka: times better (dashed: equal; black mark: goal)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure_.savefig(path, dpi=130)
    pyplot.close(figure_)
