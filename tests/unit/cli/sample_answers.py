"""All pipelines as the screen and the page get them: a state, and a row of each result topic."""

from __future__ import annotations

from typing import Any

from ottla.cli.pipeline_answers import Answer, lake_answer
from ottla.cli.pipeline_layout import Shown
from ottla.cli.pipeline_sentences import sentence
from ottla.cli.pipeline_states import states
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.pipeline import View
from ottla.pipelines.frame.progress import Progress
from ottla.pipelines.ingestion.state import LakeFile, LakeState

TIME_MS = 1_767_225_600_000
ROWS: dict[str, dict[str, Any]] = {
    "campaign.comparisons": {
        "experiment": "autumn-banner",
        "window_start": TIME_MS,
        "conversion_a": 0.0382,
        "conversion_b": 0.126,
        "difference": 0.0877,
        "low": 0.022,
        "high": 0.156,
        "p_value": 0.00892,
        "better": "B",
    },
    "gettaxi.surge": {"city": "brno", "cell": "871e06943ffffff", "percent": 120, "demand": 3, "supply": 1},
    "gettaxi.matches": {
        "ride_id": "brno-ride-34",
        "driver_id": "brno-driver-25",
        "distance_m": 141,
        "surge_percent": 100,
        "decided_at": TIME_MS,
    },
    "gettaxi.costs": {
        "ride_id": "vienna-ride-4",
        "distance_m": 710,
        "duration_s": 39,
        "surge_percent": 100,
        "cost_cents": 355,
        "dropped_off_at": TIME_MS,
    },
    "movieflix.positions": {
        "user_id": "user-0223",
        "show_id": "show-02",
        "position_s": 2739,
        "finished": False,
        "event_time": TIME_MS,
    },
    "movieflix.profiles": {"user_id": "user-0204", "favourites": ["comedy", "crime"], "minutes": {"comedy": 1}},
    "movieflix.next-shows": {"user_id": "user-0204", "title": "Comedy, part 2", "score": 30},
    "mybank.alerts": {"account": "acc-36", "amount_cents": 268754, "limit_cents": 42000, "event_time": TIME_MS},
    "mybank.limits": {"account": "acc-38", "limit_cents": 248900, "since": TIME_MS},
    "mysocialmedia.trending": {"window_start": TIME_MS, "rank": 1, "post_id": "p-926", "score": 12},
    "mysocialmedia.totals": {"post_id": "p-971", "author": "u1259", "likes": 3, "comments": 0},
}
LAKE = LakeState(
    files={
        name: LakeFile(name, topic, "2026-01-01", "05", 400, 1024)
        for name, topic in (("a", "orders"), ("b", "orders"), ("c", "visits"))
    }
)


def shown(rows: int = 8) -> list[Shown]:
    """All pipelines, with as many rows of each answer, and long figures."""
    pipelines = [catalogue.pipeline(name) for name in catalogue.names()]
    progress = [
        Progress(
            one.name,
            "query",
            "running",
            batch=7,
            rows_per_second=1234.5,
            batch_ms=21_690,
            lag=1_234_567,
            behind_ms=754_000,
            delay_ms=12_300,
            dead_letters=12,
            late=34,
        )
        for one in pipelines
    ]
    result = []
    for one, state in zip(pipelines, states([one.name for one in pipelines], progress), strict=True):
        answers = [_answer(view, rows) for view in one.views]
        if one.name == "ingestion":
            answers.append(lake_answer(LAKE))
        result.append(Shown(state, 11_127, answers))
    return result


def _answer(view: View, rows: int) -> Answer:
    row = ROWS[view.topic]
    return Answer(view.title, view.columns, (row,) * rows, (sentence(view, row),) * rows)
