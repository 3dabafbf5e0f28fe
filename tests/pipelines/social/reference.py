"""What the pipeline `mysocialmedia` must answer, computed in plain Python from the events that were sent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from tests.pipelines.driving import Run
from tests.pipelines.judged import Demands, Fields, judge, verify_rejects

from ottla.pipelines.frame.generating import Event

_LATENESS_MS = 120_000
_WINDOW_MS, _SLIDE_MS = 300_000, 60_000
_PLACES = 10
_ACTION: dict[str, type] = {"post_id": str, "user_id": str}
_DEMANDS: Demands = {
    "mysocialmedia.posts": {**_ACTION, "text": str},
    "mysocialmedia.likes": _ACTION,
    "mysocialmedia.comments": {**_ACTION, "text": str},
}


def verify(run: Run, events: Sequence[Event]) -> None:
    judged = judge(events, _DEMANDS, _LATENESS_MS)
    verify_rejects(run, judged)
    actions = [(topic.removeprefix("mysocialmedia."), fields) for topic, fields in judged.once_each()]
    assert run.table("mysocialmedia.totals") == _totals(actions)
    assert run.table("mysocialmedia.trending") == _trending(actions)


def _totals(actions: list[tuple[str, Fields]]) -> dict[str, dict[str, Any]]:
    totals: dict[str, dict[str, Any]] = {}
    for kind, action in actions:
        row = totals.setdefault(
            action["post_id"],
            {"post_id": action["post_id"], "author": None, "text": None, "posted_at": None, "likes": 0, "comments": 0},
        )
        if kind == "posts":
            row |= {"author": action["user_id"], "text": action["text"], "posted_at": action["event_time"]}
        else:
            row[kind] += 1
    return totals


def _trending(actions: list[tuple[str, Fields]]) -> dict[str, dict[str, Any]]:
    windows: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for kind, action in actions:
        last = action["event_time"] // _SLIDE_MS * _SLIDE_MS
        for start in range(last - _WINDOW_MS + _SLIDE_MS, last + 1, _SLIDE_MS):
            if kind != "posts":
                windows[start][action["post_id"]] += 3 if kind == "comments" else 1
    return {
        f"{start}|{rank}": {
            "window_start": start,
            "window_end": start + _WINDOW_MS,
            "rank": rank,
            "post_id": post,
            "score": score,
        }
        for start, scores in windows.items()
        for rank, (score, post) in enumerate(sorted((-score, post) for post, score in scores.items())[:_PLACES], 1)
        for score in [-score]
    }
