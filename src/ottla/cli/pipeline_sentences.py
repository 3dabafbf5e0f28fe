"""Rows of results as sentences, for where a table has no room."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from ottla.cli.output import text_of
from ottla.pipelines.bank.job import ALERTS, LIMITS
from ottla.pipelines.campaign.job import COMPARISONS
from ottla.pipelines.frame.pipeline import View
from ottla.pipelines.frame.results import Row
from ottla.pipelines.movieflix.topics import NEXT_SHOWS, POSITIONS, PROFILES
from ottla.pipelines.social.job import TOTALS, TRENDING
from ottla.pipelines.taxi.topics import COSTS, MATCHES, SURGE

_TIMES: Final = ("_start", "_end", "_at", "_time", "since")
_EARLIEST_TIME_MS: Final = 1_000_000_000_000


def sentence(view: View, row: Row) -> str:
    """What a row says. Rows of other forms, and of other pipelines, are told field by field."""
    say = _SENTENCES.get(view.topic)
    if say is not None:
        try:
            return say(row)
        except (KeyError, TypeError, ValueError):
            # A topic may have records of an older release.
            pass
    return ", ".join(f"{name.replace('_', ' ')} {text_of(cell(name, row.get(name)))}" for name in view.columns)


def cell(name: str, value: object) -> object:
    """A value as a table shows it: times of the day, and numbers as long as people read them."""
    if isinstance(value, int) and name.endswith(_TIMES) and value > _EARLIEST_TIME_MS:
        return datetime.fromtimestamp(value / 1000).strftime("%H:%M:%S")
    return f"{value:.3g}" if isinstance(value, float) else value


def _comparison(row: Row) -> str:
    if row["difference"] is None:
        return f"{row['experiment']}: too little has been seen to compare A and B"
    points = {name: 100 * row[name] for name in ("difference", "low", "high")}
    seen = "B by {difference:+.1f} points ({low:+.1f} to {high:+.1f})".format(**points)
    found = "no difference yet" if row["better"] is None else f"{row['better']} sells better"
    return f"{row['experiment']}: {found}, {seen}"


def _surge(row: Row) -> str:
    return (
        f"{row['city']}, cell {row['cell']}: {row['percent']} % of the price, "
        f"demand {row['demand']}, supply {row['supply']}"
    )


def _match(row: Row) -> str:
    return f"{row['ride_id']}: {row['driver_id'] or 'nobody'} comes, {row['distance_m']} m away"


def _cost(row: Row) -> str:
    return f"{row['ride_id']}: cost {_money(row['cost_cents'])} for {row['distance_m']} m in {row['duration_s']} s"


def _position(row: Row) -> str:
    minutes, seconds = divmod(row["position_s"], 60)
    how = "has seen" if row["finished"] else f"goes on at {minutes}:{seconds:02} of"
    return f"{row['user_id']} {how} {row['show_id']}"


def _profile(row: Row) -> str:
    return f"{row['user_id']} likes {' and '.join(row['favourites']) or 'nothing yet'}"


def _next_show(row: Row) -> str:
    return f"{row['user_id']} should watch {row['title'] or 'anything'} next"


def _alert(row: Row) -> str:
    return f"{row['account']}: {_money(row['amount_cents'])} is above its limit of {_money(row['limit_cents'])}"


def _limit(row: Row) -> str:
    return f"{row['account']} has a limit of {_money(row['limit_cents'])} since {cell('since', row['since'])}"


def _trend(row: Row) -> str:
    since = cell("window_start", row["window_start"])
    return f"trending since {since}: {row['rank']}. {row['post_id']}, score {row['score']}"


def _total(row: Row) -> str:
    return f"{row['post_id']} of {row['author']}: {row['likes']} likes, {row['comments']} comments"


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


_SENTENCES: Final[Mapping[str, Callable[[Row | Any], str]]] = {
    COMPARISONS: _comparison,
    SURGE: _surge,
    MATCHES: _match,
    COSTS: _cost,
    POSITIONS: _position,
    PROFILES: _profile,
    NEXT_SHOWS: _next_show,
    ALERTS: _alert,
    LIMITS: _limit,
    TRENDING: _trend,
    TOTALS: _total,
}
