"""MovieFlix's answers, computed from docs/pipelines/MOVIEFLIX.md alone, in plain Python, from the events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tests.pipelines.driving import Run
from tests.pipelines.judged import Fields, judge, rows_of, verify_rejects

from ottla.pipelines.frame.generating import Event

LATENESS_MS = 600_000
GENRES = ("comedy", "crime", "documentary", "drama", "family", "science fiction")
_VIEW = {"user_id": str, "show_id": str, "position_s": int, "watched_s": int, "finished": bool}
_SHOW = {"show_id": str, "title": str, "genres": list, "rank": int, "available_from": int}


def verify(run: Run, events: Sequence[Event]) -> None:
    judged = judge(events, {"movieflix.views": _VIEW}, LATENESS_MS, _holds)
    catalogue = rows_of(events, "movieflix.catalogue", _SHOW, judged, lambda key, show: show["show_id"] == key)
    verify_rejects(run, judged)
    views = sorted((view for _, view in judged.once_each()), key=lambda view: (view["event_time"], view["event_id"]))
    tastes = {
        user: taste(user, [view for view in views if view["user_id"] == user], catalogue)
        for user in {view["user_id"] for view in views}
    }
    assert any(profile["finished"] for profile, _ in tastes.values()), "nobody has finished anything"
    assert run.table("movieflix.positions") == positions(views)
    assert run.table("movieflix.profiles") == {user: profile for user, (profile, _) in tastes.items()}
    assert run.table("movieflix.next-shows") == {user: advice for user, (_, advice) in tastes.items()}
    verify_lake(run, views)


def verify_lake(run: Run, views: list[Fields]) -> None:
    """Each view is there once, in the folder of its date."""
    stored = run.lake_rows("views")
    for row in stored:
        assert row.pop("date") == str(datetime.fromtimestamp(row["event_time"] / 1000, UTC).date())
    assert sorted(stored, key=lambda row: (row["event_time"], row["event_id"])) == views


def _holds(topic: str, fields: Fields) -> bool:
    return bool(fields["position_s"] >= 0 and 0 <= fields["watched_s"] <= 1_000_000_000)


def positions(views: list[Fields]) -> dict[str, Fields]:
    """From views in their order: the last one of each user and show."""
    told = ("user_id", "show_id", "position_s", "finished", "event_time")
    return {f"{view['user_id']}|{view['show_id']}": {name: view[name] for name in told} for view in views}


def taste(user: str, views: list[Fields], catalogue: dict[str, Fields]) -> tuple[Fields, Fields]:
    """The profile of a user, and the next show."""
    seconds = dict.fromkeys(GENRES, 0)
    for view in views:
        for genre in catalogue.get(view["show_id"], {"genres": []})["genres"]:
            seconds[genre] += view["watched_s"]
    as_of = max(view["event_time"] for view in views)
    begun = {view["show_id"] for view in views}
    profile = {
        "user_id": user,
        "as_of": as_of,
        "minutes": {genre: watched // 60 for genre, watched in seconds.items()},
        "favourites": sorted((g for g in GENRES if seconds[g]), key=lambda genre: (-seconds[genre], genre))[:3],
        "finished": sorted({view["show_id"] for view in views if view["finished"]}),
    }
    best: tuple[int, int, str] | None = None
    for show in catalogue.values():
        if show["available_from"] <= as_of and show["show_id"] not in begun:
            score = sum(seconds[genre] for genre in show["genres"]) // len(show["genres"])
            best = max(best or (-1, 0, ""), (score, -show["rank"], show["show_id"]))
    advice = {"show_id": best[2], "title": catalogue[best[2]]["title"], "score": best[0]} if best else {}
    return profile, {"user_id": user, "as_of": as_of, "show_id": None, "title": None, "score": None, **advice}
