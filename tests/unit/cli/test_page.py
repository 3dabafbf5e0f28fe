"""The page of the demo: its data, who may have it, and what a browser makes of it."""

from __future__ import annotations

import http.client
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tests.peers.browser import drawn
from tests.unit.cli.sample_answers import ROWS, TIME_MS, shown

from ottla.cli.page.server import PageServer, PlotlyMissing, require_library
from ottla.cli.page.snapshot import Snapshots
from ottla.pipelines.frame import catalogue

TABLES = {topic: {"key": row} for topic, row in ROWS.items()}


def snapshot() -> dict[str, Any]:
    return Snapshots().take(TIME_MS, "31 s", shown(), TABLES)


def asked(page: PageServer, path: str, host: str | None = None) -> http.client.HTTPResponse:
    port = int(page.url.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": host or f"localhost:{port}", "Connection": "close"})
    answer = connection.getresponse()
    answer.body = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def test_every_pipeline_has_a_chart_of_what_it_answers() -> None:
    found = {one["name"]: one for one in snapshot()["pipelines"]}
    assert sorted(found) == catalogue.names()
    traces = {name: one["chart"]["data"][0] for name, one in found.items()}
    assert traces["campaign"]["y"] == ["autumn-banner"]
    assert traces["campaign"]["x"][0] == pytest.approx(8.77)
    assert traces["gettaxi"]["marker"]["color"] == [120]
    assert traces["movieflix"]["y"] == ["comedy", "crime"]
    assert traces["mybank"]["y"] == [2687.54]
    assert traces["mysocialmedia"]["x"] == [12]
    assert (traces["ingestion"]["y"], traces["ingestion"]["x"]) == (["orders", "visits"], [800, 400])
    assert found["campaign"]["sentences"][0].startswith("autumn-banner: B sells better")


def test_before_there_are_answers_there_are_no_charts() -> None:
    taken = Snapshots().take(TIME_MS, "1 s", [one for one in shown() if one.state.pipeline != "ingestion"], {})
    assert [one["chart"] for one in taken["pipelines"]] == [None] * 5


def test_how_far_pipelines_were_behind_is_remembered_and_bounded() -> None:
    snapshots = Snapshots()
    first = shown()[:1]
    for number in range(700):
        taken = snapshots.take(TIME_MS + 2_000 * number, "", first, {})
    (line,) = taken["behind"]["data"]
    assert len(line["x"]) == len(line["y"]) == 600
    assert line["y"][-1] == 754


def test_only_browsers_of_this_machine_get_an_answer() -> None:
    with PageServer(0) as page:
        page.show(snapshot())
        assert json.loads(asked(page, "/data").body)["head"] == "31 s"  # type: ignore[attr-defined]
        assert asked(page, "/").getheader("Content-Type", "").startswith("text/html")
        assert asked(page, "/", host="evil.example:8090").status == 403
        assert asked(page, "/etc/passwd").status == 404


def test_where_the_usual_port_is_taken_another_one_serves() -> None:
    with PageServer() as one, PageServer() as other:
        assert one.url != other.url
        assert asked(other, "/data").status == 200


def test_without_plotly_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PlotlyMissing, match="pip install"):
        require_library()
    with PageServer(0) as page:
        assert asked(page, "/plotly.js").status == 503


@pytest.mark.skipif(importlib.util.find_spec("plotly") is None, reason="plotly is not installed: run make setup")
def test_a_browser_draws_all_charts(tmp_path: Path) -> None:
    with PageServer(0) as page:
        page.show(snapshot())
        elements = drawn(page.url, tmp_path, after_ms=5_000)
    # One for each pipeline, and one of how far they are behind.
    assert elements.count("chart js-plotly-plot") == 6
    assert elements.count('<svg class="main-svg"') >= 7
    for text in ("acc-36: 2,687.54 is above its limit", "autumn-banner", "how many points B converts better than A"):
        assert text in elements
