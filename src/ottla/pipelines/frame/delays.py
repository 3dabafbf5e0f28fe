"""How far queries are behind in time, and how long events wait for their answers.

| figure  | is                                                                                                    |
|---------|-------------------------------------------------------------------------------------------------------|
| behind  | now, less the timestamp of the oldest record that the query has not taken; 0 where it has taken all   |
| delay   | from the timestamp of the oldest record of the last micro-batch that had any to that micro-batch's    |
|         | end, when what it has answered can be read: the longest that any of its records waited                |

A record's timestamp is when it was sent, by the clock of who sent it, or of the broker with `LogAppendTime`. An answer
that waits for more than its micro-batch, such as a window's end, comes later by that. A query that reads what another
one has written counts from when that was written.

Records are looked up by their offsets, one for each partition that has lag. What is asked for in each report is known
from the one before, or a new offset, so a report fetches as much as queries have moved on.
"""

import json
import logging
import random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ottla.client.errors import OttlaError
from ottla.client.sync.consumer import Consumer
from ottla.client.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress

Place = tuple[str, int]
Offsets = dict[Place, int]
# A topic, a partition, an offset.
Spot = tuple[str, int, int]

_BUDGET_SECONDS: Final = 0.25
_MOST_AT_A_TIME: Final = 100
# A batch is fetched for its first record; the first of an answer comes whole, however large it is.
_SETTINGS: Final = {
    "isolation.level": "read_committed",
    # What was deleted is not waited for: the next record is the oldest then.
    "auto.offset.reset": "earliest",
    "fetch.max.bytes": "1048576",
    "max.partition.fetch.bytes": "65536",
    # At the end of a log an answer would come only then, and the next question after it.
    "fetch.max.wait.ms": "20",
}

_logger = logging.getLogger(__name__)


class SendTimes:
    """Timestamps of the records at offsets, or of the next ones where these are gone. It keeps those that were asked
    for last, takes a quarter of a second at most, and looks up a hundred partitions in that: what it has not found it
    looks for when it is asked again."""

    def __init__(self, brokers: Mapping[str, object]) -> None:
        self._known: dict[Spot, int] = {}
        self._consumer = Consumer[bytes, bytes](config={**brokers, **_SETTINGS})

    def close(self) -> None:
        self._consumer.close()

    def at(self, spots: Collection[Spot]) -> Mapping[Spot, int]:
        """In milliseconds since 1970; without those that were not found in time."""
        self._known = {spot: self._known[spot] for spot in spots if spot in self._known}
        unknown = [spot for spot in spots if spot not in self._known]
        # Where there are too many none is always the last.
        random.shuffle(unknown)
        ends_at = time.monotonic() + _BUDGET_SECONDS
        try:
            while unknown and time.monotonic() < ends_at:
                # A consumer is at one place of a partition at a time.
                together = dict(list({spot[:2]: spot[2] for spot in unknown}.items())[:_MOST_AT_A_TIME])
                self._look_up(together, ends_at)
                unknown = [spot for spot in unknown if together.get(spot[:2]) != spot[2]]
        except OttlaError as failure:
            _logger.warning("the times of records cannot be looked up: %s", failure)
        return self._known

    def _look_up(self, offsets: Offsets, ends_at: float) -> None:
        wanted = dict(offsets)
        self._consumer.assign([(topic, number, offset) for (topic, number), offset in wanted.items()])
        try:
            while wanted and (left := ends_at - time.monotonic()) > 0:
                for record in self._consumer.poll(left):
                    offset = wanted.pop((record.topic, record.partition), None)
                    if offset is not None:
                        self._known[record.topic, record.partition, offset] = record.timestamp
        finally:
            # It would read on.
            self._consumer.assign(list[TopicPartition]())


def taken_by(last: "StreamingQueryProgress") -> Offsets:
    """Where a query's next micro-batch begins."""
    return {place: offset for source in last.sources for place, offset in offsets_of(source.endOffset).items()}


def offsets_of(text: str | None) -> Offsets:
    """By topic and partition, from the offsets of a source as both formats write them."""
    try:
        written = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(written, Mapping):
        return {}
    return {
        (topic, int(partition)): offset
        for topic, partitions in written.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
    }


def untaken(taken: Offsets, ends: Offsets) -> set[Spot]:
    """The oldest record of each partition that a query has not taken, where there is one."""
    return {(*place, offset) for place, offset in taken.items() if offset < ends.get(place, offset)}


def behind_ms(oldest: Iterable[Spot], times: Mapping[Spot, int], now_ms: int) -> int | None:
    """None where there are such records, and the time of none is known."""
    spots = list(oldest)
    known = [times[spot] for spot in spots if spot in times]
    if not known:
        return None if spots else 0
    return max(now_ms - min(known), 0)


def _firsts(source: "SourceProgress") -> Iterator[Spot]:
    began = offsets_of(source.startOffset)
    for place, end in offsets_of(source.endOffset).items():
        # A partition that is new to the query is read from its beginning.
        first = began.get(place, 0)
        if first < end:
            yield (*place, first)


class Delay:
    """That of one query since it was started, from what Spark says of its micro-batches."""

    def __init__(self) -> None:
        self._batch = -1
        self._ended_ms = 0
        self._first: frozenset[Spot] = frozenset()
        self._measured: int | None = None

    def see(self, last: "StreamingQueryProgress") -> frozenset[Spot]:
        """The records to look up: the first that the micro-batch took of each partition."""
        if last.batchId != self._batch and last.numInputRows:
            self._batch = last.batchId
            triggered_ms = datetime.fromisoformat(last.timestamp).timestamp() * 1000
            self._ended_ms = int(triggered_ms) + last.batchDuration
            self._first = frozenset(spot for source in last.sources for spot in _firsts(source))
        return self._first

    def measured(self, times: Mapping[Spot, int]) -> int | None:
        """The last that is known. Where some of the records are still looked for, it is that of the others so far."""
        known = [times[spot] for spot in self._first if spot in times]
        if known:
            self._measured = max(self._ended_ms - min(known), 0)
            if len(known) == len(self._first):
                self._first = frozenset()
        return self._measured
