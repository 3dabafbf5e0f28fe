"""Ratios, goals and the kept file: a benchmark that reads its own figures wrongly is worse than none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import settings
from bench.results import Outcome, Results, from_json, replaced, to_json, write_json
from bench.rows import KAFKA, OTTLA, SECTIONS, Row, rows

RATE = Row("produce.small.1", "small requests", "req/s", 3.0)
TIME = Row("clients.p50", "latency", "ms", 1.0, higher_is_better=False)


def test_ratio_is_of_medians_not_of_extremes() -> None:
    outcome = Outcome(RATE, baseline=[10.0, 1.0, 11.0], candidate=[30.0, 900.0, 29.0])
    assert outcome.ratio == pytest.approx(3.0)
    assert outcome.met is True


def test_ratio_above_one_is_better_for_times_too() -> None:
    assert Outcome(TIME, [0.4], [0.2]).ratio == pytest.approx(2.0)
    assert Outcome(TIME, [0.2], [0.4]).met is False


def test_side_that_was_not_measured_gives_no_ratio() -> None:
    outcome = Outcome(RATE, [10.0], [])
    assert outcome.ratio is None
    assert outcome.met is None


def test_goal_is_missed_just_below_it() -> None:
    assert Outcome(RATE, [100.0], [299.9]).met is False


def test_every_row_belongs_to_a_section_and_keys_are_unique() -> None:
    table = rows(settings.full())
    assert {row.section for row in table} == set(SECTIONS)
    assert len({row.key for row in table}) == len(table)


def test_kept_run_gives_the_same_outcomes(tmp_path: Path) -> None:
    results = Results()
    for value in (1.0, 3.0, 2.0):
        results.add(RATE.key, KAFKA, value)
        results.add(RATE.key, OTTLA, 4 * value)
    results.add(TIME.key, KAFKA, 0.3)
    path = tmp_path / "deep" / "run.json"
    write_json(path, to_json(results, [RATE, TIME], {"date": "2025-01-31"}))
    kept = from_json(json.loads(path.read_text()))
    assert [(outcome.row.key, outcome.ratio, outcome.met) for outcome in kept] == [
        (RATE.key, 4.0, True),
        (TIME.key, None, None),
    ]
    assert kept[0].baseline == [1.0, 3.0, 2.0]


def test_a_section_takes_its_place_in_a_kept_run() -> None:
    kept_row, other_row = {"key": "scale.start.10", "ratio": 1.0}, {"key": "produce.small.1", "ratio": 2.0}
    former_row = {"key": "scale.stop.10", "ratio": 1.0}
    kept = {
        "date": "2025-01-31",
        "rows": [kept_row, former_row, other_row],
        "limits": {"fetch.1m": 1.0},
        "failures": ["scale: kafka: start: it did not", "produce: a row: failed"],
        "runs": [
            {"row": "scale.start.10", "seconds": 9},
            {"row": "scale.stop.10", "seconds": 1},
            {"row": "produce.small.1", "seconds": 2},
        ],
    }
    row, new_row = {"key": "scale.start.10", "ratio": 3.0}, {"key": "scale.memory.10", "ratio": 4.0}
    newer = {
        "date": "2025-02-01",
        "rounds": 3,
        "seconds": 60.0,
        "stolen": 0.0,
        "rows": [row, new_row],
        "limits": {},
        "failures": [],
        "runs": [{"row": "scale.start.10", "seconds": 5}],
    }
    whole = replaced(kept, newer, ("scale",))
    assert whole["rows"] == [other_row, row, new_row]
    assert whole["runs"] == [{"row": "produce.small.1", "seconds": 2}, {"row": "scale.start.10", "seconds": 5}]
    assert whole["failures"] == ["produce: a row: failed"]
    assert whole["date"] == "2025-01-31"
    assert whole["measured_later"]["scale"]["date"] == "2025-02-01"
