"""Samples, their medians and the ratios of medians, and the file they are kept in."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.rows import SECTIONS, Row, section_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row as it came out. A side that was not measured has no median, and then there is no ratio."""

    row: Row
    baseline: list[float]
    candidate: list[float]

    @property
    def baseline_median(self) -> float | None:
        return statistics.median(self.baseline) if self.baseline else None

    @property
    def candidate_median(self) -> float | None:
        return statistics.median(self.candidate) if self.candidate else None

    @property
    def ratio(self) -> float | None:
        if self.baseline_median is None or self.candidate_median is None:
            return None
        return self.row.ratio(self.baseline_median, self.candidate_median)

    @property
    def met(self) -> bool | None:
        """Whether the goal was reached; None where there is no goal or no ratio."""
        if self.row.at_most is not None:
            return None if self.candidate_median is None else self.candidate_median <= self.row.at_most
        if self.row.goal is None or self.ratio is None:
            return None
        return self.ratio >= self.row.goal


@dataclass(slots=True)
class Results:
    """What one run of the suite found."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, key: str, side: str, value: float) -> None:
        self.samples.setdefault(key, {}).setdefault(side, []).append(value)

    def keep(self, key: str, side: str, figures: dict[str, Any]) -> None:
        """Everything a job said, beside the one value that goes into the table."""
        self.runs.append({"row": key, "side": side, **figures})

    def outcomes(self, rows: list[Row]) -> list[Outcome]:
        found = []
        for row in rows:
            sides = self.samples.get(row.key, {})
            if sides:
                found.append(Outcome(row, sides.get(row.baseline, []), sides.get(row.candidate, [])))
        return found


def to_json(results: Results, rows: list[Row], facts: dict[str, Any]) -> dict[str, Any]:
    return {
        **facts,
        "rows": [
            {
                "key": outcome.row.key,
                "title": outcome.row.title,
                "unit": outcome.row.unit,
                "higher_is_better": outcome.row.higher_is_better,
                "baseline": _side(outcome.row.baseline, outcome.baseline, outcome.baseline_median),
                "candidate": _side(outcome.row.candidate, outcome.candidate, outcome.candidate_median),
                "ratio": outcome.ratio,
                "goal": outcome.row.goal,
                "goal_text": outcome.row.described_goal,
                "at_most": outcome.row.at_most,
                "met": outcome.met,
            }
            for outcome in results.outcomes(rows)
        ],
        "limits": results.limits,
        "failures": results.failures,
        "runs": results.runs,
    }


def from_json(content: dict[str, Any]) -> list[Outcome]:
    """The outcomes of a run that was kept; enough to draw the table and the plot again."""
    return [
        Outcome(
            Row(
                key=kept["key"],
                title=kept["title"],
                unit=kept["unit"],
                goal=kept["goal"],
                higher_is_better=kept["higher_is_better"],
                baseline=kept["baseline"]["name"],
                candidate=kept["candidate"]["name"],
                goal_text=kept["goal_text"],
                at_most=kept.get("at_most"),
            ),
            kept["baseline"]["samples"],
            kept["candidate"]["samples"],
        )
        for kept in content["rows"]
    ]


def replaced(kept: dict[str, Any], newer: dict[str, Any], sections: tuple[str, ...]) -> dict[str, Any]:
    """A kept run with some sections measured anew; `measured_later` says which, and in which circumstances. All rows
    that these sections had before go."""
    facts = ("date", "rounds", "seconds", "busy_before", "stolen")
    again = {section: {fact: newer.get(fact) for fact in facts} for section in sections}
    failures = [text for text in kept["failures"] if text.partition(":")[0] not in sections]

    def stays(key: str) -> bool:
        return section_of(key) not in sections

    rows = [row for row in kept["rows"] if stays(row["key"])] + newer["rows"]
    return {
        **kept,
        "measured_later": {**kept.get("measured_later", {}), **again},
        "rows": sorted(rows, key=lambda row: SECTIONS.index(section_of(row["key"]))),
        "limits": {**kept["limits"], **newer["limits"]},
        "failures": failures + newer["failures"],
        "runs": [run for run in kept["runs"] if stays(run["row"])] + newer["runs"],
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def _side(name: str, samples: list[float], median: float | None) -> dict[str, Any]:
    return {"name": name, "samples": samples, "median": median}
