"""The generated part of the page changes; the words around it stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.document import BEGIN, END, MissingMarkersError, generated, write_document
from bench.report import figure, ratio_text
from bench.results import Outcome
from bench.rows import LARGE_LOG, SMALL_LOG, Row

CONTENT: dict[str, Any] = {
    "date": "2025-01-31",
    "rounds": 3,
    "seconds": 600.0,
    "machine": {
        "cores": 2,
        "processor": "a processor",
        "memory_gib": 8,
        "system": "Linux 6",
        "python": "3.11",
        "java": "17",
        "ottla": "0.1",
        "kafka": "4.3.1",
        "confluent-kafka": "2.16",
    },
    "limits": {"produce.small.1": 1_000_000.0},
    "failures": [],
}
OUTCOMES = [
    Outcome(Row("produce.small.1", "small requests", "req/s", 3.0), [10_000.0], [50_000.0]),
    Outcome(Row("depth.growth.head", "head", "req/s", 0.9, baseline=SMALL_LOG, candidate=LARGE_LOG), [10.0], [8.0]),
]


def test_words_around_the_markers_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, plot = tmp_path / "page.md", tmp_path / "plot.png"
    page.write_text(f"before\n{BEGIN}\nan old table\n{END}\nafter\n")
    write_document(CONTENT, OUTCOMES, page, plot)
    once = page.read_text()
    write_document(CONTENT, OUTCOMES, page, plot)
    assert page.read_text() == once
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "an old table" not in once
    assert "| small requests | 10 k req/s | 50 k req/s | 5.00x | 3x | met |" in once
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no place here")
    with pytest.raises(MissingMarkersError, match=r"page\.md"):
        write_document(CONTENT, OUTCOMES, page, tmp_path / "plot.png")
    assert page.read_text() == "no place here"


def test_rows_of_ottla_alone_say_what_they_compare() -> None:
    assert f"8 req/s ({LARGE_LOG}) | 0.80x | 0.9x | missed |" in generated(CONTENT, OUTCOMES, "plot.png")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "req/s", "-"),
        (437.2, "req/s", "437 req/s"),
        (72_345.0, "req/s", "72.3 k req/s"),
        (1_234_567.0, "rec/s", "1.23 M rec/s"),
        (0.1678, "ms", "0.168 ms"),
        (1.4321, "GB/s", "1.43 GB/s"),
        (670.4, "MB", "670 MB"),
    ],
)
def test_figures_have_three_digits_and_a_unit(value: float | None, unit: str, text: str) -> None:
    assert figure(value, unit) == text


def test_ratios_have_no_false_precision() -> None:
    assert ratio_text(23.456) == "23x"
    assert ratio_text(1.234) == "1.23x"


def test_sections_that_were_measured_again_are_named() -> None:
    later = {"scale": {"date": "2025-02-01", "seconds": 300.0}}
    text = generated({**CONTENT, "measured_later": later}, OUTCOMES, "plot.png")
    assert (
        "the whole run took 10 minutes.\nMeasured again, in runs of their own: scale (2025-02-01, 5 minutes).\n" in text
    )
