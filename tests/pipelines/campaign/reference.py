"""What the pipeline `campaign` must answer, computed in plain Python from the events that were sent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import pytest
from tests.pipelines.driving import Run
from tests.pipelines.judged import Demands, Fields, judge, rows_of, verify_rejects

from ottla.pipelines.frame.generating import Event

_WINDOW_MS = 300_000
_LATENESS_MS = 600_000
_VISIT: dict[str, type] = {"campaign_id": str, "user_id": str}
_DEMANDS: Demands = {
    "campaign.views": _VISIT,
    "campaign.clicks": _VISIT,
    "campaign.purchases": {**_VISIT, "amount_cents": int},
}


def verify(run: Run, events: Sequence[Event]) -> None:
    judged = judge(events, _DEMANDS, _LATENESS_MS, _holds)
    campaigns = rows_of(
        events,
        "campaign.campaigns",
        {"experiment": str, "arm": str},
        judged,
        lambda _, campaign: campaign["arm"] in ("A", "B"),
    )
    verify_rejects(run, judged)
    expected = _comparisons(judged.once_each(), campaigns)
    found = run.table("campaign.comparisons")
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: found[key][name] for name in row} == {
            name: value if value is None or isinstance(value, str) else pytest.approx(value, abs=1e-12)
            for name, value in row.items()
        }, key


def _holds(topic: str, fields: Fields) -> bool:
    return bool(topic != "campaign.purchases" or 1 <= fields["amount_cents"] <= 100_000_000_000)


def _comparisons(visits: list[tuple[str, Fields]], campaigns: dict[str, Any]) -> dict[str, dict[str, Any]]:
    counts: dict[tuple[str, int], Counter[str]] = {}
    for topic, visit in visits:
        campaign = campaigns.get(visit["campaign_id"])
        if campaign is None:
            continue
        start = visit["event_time"] // _WINDOW_MS * _WINDOW_MS
        count = counts.setdefault((campaign["experiment"], start), Counter())
        arm = campaign["arm"].lower()
        count[f"{topic.removeprefix('campaign.')}_{arm}"] += 1
        count[f"revenue_cents_{arm}"] += visit.get("amount_cents", 0)
    return {f"{experiment}|{start}": _row(experiment, start, count) for (experiment, start), count in counts.items()}


def _row(experiment: str, start: int, count: Counter[str]) -> dict[str, Any]:
    names = [f"{kind}_{arm}" for arm in "ab" for kind in ("views", "clicks", "purchases", "revenue_cents")]
    row: dict[str, Any] = {name: count[name] for name in names}
    row |= {"experiment": experiment, "window_start": start, "window_end": start + _WINDOW_MS}
    row["final_at"] = row["window_end"] + _LATENESS_MS
    shares = {arm: _share(count[f"purchases_{arm}"], count[f"views_{arm}"]) for arm in "ab"}
    row |= {f"conversion_{arm}": share for arm, share in shares.items()}
    return row | _confidence(count, shares["a"], shares["b"])


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _confidence(count: Counter[str], share_a: float | None, share_b: float | None) -> dict[str, Any]:
    """By the roots of the score's equation, which is another way to Wilson's limits."""
    if share_a is None or share_b is None or max(share_a, share_b) > 1:
        return dict.fromkeys(("difference", "low", "high", "p_value", "better"))
    z = NormalDist().inv_cdf(0.975)
    low_a, high_a = _roots(share_a, count["views_a"], z)
    low_b, high_b = _roots(share_b, count["views_b"], z)
    difference = share_b - share_a
    total = count["views_a"] + count["views_b"]
    pooled = (count["purchases_a"] + count["purchases_b"]) / total
    variance = pooled * (1 - pooled) * total / (count["views_a"] * count["views_b"])
    p_value = 2 * NormalDist().cdf(-abs(difference) / math.sqrt(variance)) if variance else 1.0
    return {
        "difference": difference,
        "low": difference - math.sqrt((share_b - low_b) ** 2 + (high_a - share_a) ** 2),
        "high": difference + math.sqrt((high_b - share_b) ** 2 + (share_a - low_a) ** 2),
        "p_value": p_value,
        "better": None if p_value >= 0.05 else "B" if difference > 0 else "A",
    }


def _roots(share: float, count: int, z: float) -> tuple[float, float]:
    """Of (p - share)^2 = z^2 p (1 - p) / count."""
    a, b, c = 1 + z * z / count, -(2 * share + z * z / count), share * share
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)
