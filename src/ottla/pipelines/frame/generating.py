"""How events come to be: what an event is, how streams get their disorder, and how they reach topics in their time.

A generator is pure: the same seed gives the same events, in the order in which they are sent. What makes streams hard
is added by `Disorder`, the same way for all of them: some events are sent twice, some late but in time, some too late
to count, some broken.
"""

import heapq
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.sync.producer import Producer


class Event(NamedTuple):
    """A record to be sent. `timestamp_ms` is when: the record carries it."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def json_event(topic: str, key: str, timestamp_ms: int, **fields: Any) -> Event:
    """An event that is sent when it happens, unless `Disorder` has other plans."""
    value = json.dumps(fields, separators=(",", ":")).encode()
    return Event(topic, key.encode(), value, timestamp_ms)


@dataclass(frozen=True)
class Disorder:
    """How often events are sent twice, late, too late and broken, as shares of all. Those that are late but in time
    come up to `lateness_ms` after they happened, those that are too late between one and two times that after it."""

    lateness_ms: int
    duplicates: float = 0.02
    delayed: float = 0.05
    too_late: float = 0.01
    malformed: float = 0.01

    def applied(self, events: Iterator[Event], choices: random.Random) -> Iterator[Event]:
        """In the order in which they are sent now."""
        waiting: list[tuple[int, int, Event]] = []
        for number, event in enumerate(events):
            while waiting and waiting[0][0] <= event.timestamp_ms:
                yield heapq.heappop(waiting)[2]
            for copy, sent in enumerate(self._fate(event, choices)):
                heapq.heappush(waiting, (sent.timestamp_ms, 2 * number + copy, sent))

    def _fate(self, event: Event, choices: random.Random) -> Iterator[Event]:
        dice = choices.random()
        for share, change in (
            (self.too_late, self._too_late),
            (self.malformed, _broken),
            (self.delayed, self._delayed),
        ):
            if dice < share:
                yield change(event, choices)
                return
            dice -= share
        yield event
        if dice < self.duplicates:
            yield self._delayed(event, choices)

    def _delayed(self, event: Event, choices: random.Random) -> Event:
        return event._replace(timestamp_ms=event.timestamp_ms + choices.randint(1, self.lateness_ms))

    def _too_late(self, event: Event, choices: random.Random) -> Event:
        return event._replace(
            timestamp_ms=event.timestamp_ms + choices.randint(self.lateness_ms + 1, 2 * self.lateness_ms)
        )


def _broken(event: Event, choices: random.Random) -> Event:
    """One of the ways in which values are broken."""
    value = event.value or b"{}"
    fields = json.loads(value)
    ways: list[Callable[[], bytes | None]] = [
        lambda: value[: len(value) // 2],
        lambda: b"not json at all",
        lambda: None,
        lambda: json.dumps({**fields, "event_time": "yesterday"}).encode(),
        lambda: json.dumps({name: one for name, one in fields.items() if name != "event_id"}).encode(),
        lambda: json.dumps({**fields, "event_time": event.timestamp_ms + 86_400_000}).encode(),
    ]
    return event._replace(value=choices.choice(ways)())


def feed(events: Iterator[Event], brokers: Mapping[str, object], stop: threading.Event) -> None:
    """Send events when their time has come, until `stop`.

    Time begins with the first event. What was missed because the machine was busy is sent at once.
    """
    with Producer[bytes, bytes](config=brokers, linger_ms=20) as producer:
        began: tuple[float, int] | None = None
        for event in events:
            if began is None:
                began = (time.monotonic(), event.timestamp_ms)
            due = began[0] + (event.timestamp_ms - began[1]) / 1000
            while not stop.is_set() and (wait := due - time.monotonic()) > 0:
                stop.wait(wait)
            if stop.is_set():
                return
            producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
