"""An independent judge of events: which count, which are malformed, which are late. Plain Python, record by record."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.pipelines.driving import Run

from ottla.pipelines.frame.generating import Event

FUTURE_MS = 60_000
MOST_VALUE_CHARACTERS, MOST_KEY_CHARACTERS = 100_000, 1_000

Fields = dict[str, Any]
# What an event of a topic must have: a type for each field, and whatever else must hold.
Demands = Mapping[str, Mapping[str, type]]
Check = Callable[[str, Fields], bool]


@dataclass
class Judged:
    """`accepted` has each event once for each time it was sent, with its topic, in the order of sending."""

    accepted: list[tuple[str, Fields]] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)
    malformed: list[Event] = field(default_factory=list)

    def once_each(self) -> list[tuple[str, Fields]]:
        """Without those that were sent again."""
        seen: set[str] = set()
        first = []
        for topic, fields in self.accepted:
            if fields["event_id"] not in seen:
                seen.add(fields["event_id"])
                first.append((topic, fields))
        return first


def judge(
    events: Iterable[Event], demands: Demands, lateness_ms: int, holds: Check = lambda topic, fields: True
) -> Judged:
    """`demands` names the topics of events; records of others are not looked at."""
    ahead_ms = min(FUTURE_MS, lateness_ms)
    found = Judged()
    for event in events:
        if event.topic not in demands:
            continue
        fields = _parsed(event.value)
        is_whole = fields is not None and _is_whole(fields, demands[event.topic]) and holds(event.topic, fields)
        if fields is None or not is_whole or fields["event_time"] > event.timestamp_ms + ahead_ms:
            found.malformed.append(event)
        elif fields["event_time"] < event.timestamp_ms - lateness_ms:
            found.late.append(event)
        else:
            found.accepted.append((event.topic, fields))
    return found


def rows_of(
    events: Iterable[Event],
    topic: str,
    wanted: Mapping[str, type],
    judged: Judged,
    holds: Check,
) -> dict[str, Fields]:
    """The rows of a table by their keys, from its records; those that are no rows join what is malformed."""
    last: dict[str, Fields | None] = {}
    for event in (one for one in events if one.topic == topic):
        assert event.key is not None
        key, row = event.key.decode(), _parsed(event.value)
        is_row = row is not None and _has_all(row, wanted) and holds(key, row)
        if event.value is not None and not is_row:
            judged.malformed.append(event)
        last[key] = row if is_row else None
    return {key: row for key, row in last.items() if row is not None}


def _parsed(value: bytes | None) -> Fields | None:
    try:
        found = json.loads(value or b"")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _is_whole(fields: Fields, wanted: Mapping[str, type]) -> bool:
    return _has_all(fields, {"event_id": str, "event_time": int, **wanted})


def _has_all(fields: Fields, wanted: Mapping[str, type]) -> bool:
    return all(type(fields.get(name)) is kind for name, kind in wanted.items())


def verify_rejects(run: Run, judged: Judged) -> None:
    """Dead letters and late events are all there, once, each with where it was and what it was."""
    for topic, expected in ((run.pipeline.dead_letters, judged.malformed), (run.pipeline.late, judged.late)):
        letters = run.letters(topic.name)
        told, wanted = Counter(map(_told, letters)), Counter(map(_place, expected))
        assert told == wanted, [_in_short(one) for one in ((told - wanted), (wanted - told))]
        assert all(one["reason"] and one["offset"] >= 0 for one in letters)
    assert judged.malformed, "events without malformed ones show nothing"
    assert judged.late, "events without late ones show nothing"
    sent: Sequence[str] = [fields["event_id"] for _, fields in judged.accepted]
    assert len(set(sent)) < len(sent), "events without duplicates show nothing"


def _in_short(letters: Counter[tuple[Any, ...]]) -> list[str]:
    return [", ".join(str(part)[:40] for part in one) for one in letters]


def _told(letter: Fields) -> tuple[Any, ...]:
    parts = [letter.get(f"{part}{what}") for part in ("key", "value") for what in ("", "_bytes", "_encoding")]
    return letter["topic"], letter["timestamp"], *parts


def _place(event: Event) -> tuple[Any, ...]:
    key, value = _shown(event.key, MOST_KEY_CHARACTERS), _shown(event.value, MOST_VALUE_CHARACTERS)
    return event.topic, event.timestamp_ms, *key, *value


def _shown(data: bytes | None, most: int) -> tuple[str | None, int | None, str | None]:
    """As a letter tells it: the text, of how many bytes, and how it is coded where it is no text."""
    if data is None:
        return None, None, None
    try:
        return data.decode()[:most], len(data), None
    except UnicodeDecodeError:
        return base64.b64encode(data[: most // 4 * 3]).decode(), len(data), "base64"
