"""The page's words about pipelines come from kept runs; and a launch day is what it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.document import BEGIN, END, write_document
from bench.jobs.launch_day_feed import launch_day
from bench.pipelines_part import PLOT_NAME, pipelines_part
from tests.unit.bench.test_document import CONTENT, OUTCOMES

from ottla.pipelines.social.events import BURST_FACTOR, BURST_SECONDS

ALONE = {
    "row": "pipelines.alone.mybank",
    "side": "ottla",
    "rate": 12_345.6,
    "state_rows": 40_000,
    "state_bytes": 25_400_000,
    "batch_ms": 1_500,
    "slowest_batch_ms": 2_250,
}
SAMPLES = [{"second": second, "lag": lag, "lags": {"totals": lag}} for second, lag in ((-1, 90), (0, 800), (30, 40))]
LAUNCH_DAY = {
    "row": "pipelines.launch.peak",
    "side": "ottla",
    "rate": 400,
    "burst_seconds": 20,
    "usual_lag": 90,
    "peak_lag": 800,
    "drained_seconds": 10.2,
    "samples": SAMPLES,
}
KILLED = {
    "row": "pipelines.load.before",
    "side": "ottla",
    "seconds_before": 9.25,
    "seconds_after": 8.0,
    "records_before": 6_000_000,
    "records_after": 4_000_000,
    "files": 12,
    "bytes": 700_000_000,
}
KEPT: dict[str, Any] = {**CONTENT, "runs": [ALONE, LAUNCH_DAY, KILLED]}


def test_each_pipeline_has_its_line() -> None:
    assert "| MyBank | 12.3 k a second | 40,000 | 25.4 MB | 1.5 s | 2.25 s |" in pipelines_part(KEPT)


def test_the_launch_day_and_the_load_are_told() -> None:
    told = "\n".join(pipelines_part(KEPT))
    assert "up to 90 events behind before, then up to 800, and back again 10 s after the burst." in told
    assert "killed (SIGKILL) after 9.2 s, with 6,000,000 of 10,000,000 records in the lake" in told


def test_a_run_without_pipelines_says_nothing_of_them() -> None:
    assert pipelines_part(CONTENT) == []


def test_the_page_shows_the_launch_day(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    write_document(KEPT, OUTCOMES, page, tmp_path / "plot.png")
    assert f"]({PLOT_NAME})" in page.read_text()
    assert (tmp_path / PLOT_NAME).read_bytes().startswith(b"\x89PNG")


def test_a_launch_day_has_fifty_times_the_events() -> None:
    begin_ms, day = launch_day({"before_seconds": 40, "after_seconds": 40, "rate": 5})
    seconds = [(event.timestamp_ms - begin_ms) / 1000 for event in day]
    usual = sum(second < 40 for second in seconds) / 40
    burst = sum(40 <= second < 40 + BURST_SECONDS for second in seconds) / BURST_SECONDS
    assert seconds == sorted(seconds)
    assert seconds[-1] < 40 + BURST_SECONDS + 40
    # Late and repeated events are spread over two minutes, so it is less than the generator's own factor.
    assert BURST_FACTOR / 2 < burst / usual <= BURST_FACTOR * 1.2
