"""What a reader should know while nothing is written out: where reading begins, and why nothing comes.

Each is said once, on standard error; records are never waited for because of it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.cli.output import Output
from ottla.cli.positions import Bounds, Kind, Position
from ottla.client.errors import BrokerUnavailable, OttlaError, UnknownTopic
from ottla.client.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin

CHECK_SECONDS = 5.0
ANSWER_SECONDS = 2.0
# A member learns its partitions a few polls after it has joined.
POLLS_WITHOUT_PARTITIONS = 10
_PLACES = {"earliest": "beginning", "latest": "end"}
_FROM_END = "reading {what} from the end: --from beginning reads what is there"


def tell_start(output: Output, topic: str) -> None:
    output.tell(_FROM_END.format(what=topic))


def tell_outside(
    output: Output, start: Position, stop: Position | None, bounds: Mapping[TopicPartition, Bounds]
) -> None:
    """Offsets that were asked for and are not there."""
    if start.kind is Kind.OFFSET:
        outside = [f"{key} {_extent(bound)}" for key, bound in bounds.items() if not _has(bound, start.value)]
        if outside:
            output.tell(f"offset {start.value} is out of range: {_some(outside)}; reading begins at the nearest one")
    if stop is not None and stop.kind is Kind.OFFSET:
        ahead = [f"{key} {_extent(bound)}" for key, bound in bounds.items() if bound.end < stop.value]
        if ahead:
            output.tell(f"reading waits until offset {stop.value} is there: {_some(ahead)}")


def tell_group_start(
    output: Output,
    group: str,
    reset: str,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    bounds: Mapping[TopicPartition, Bounds],
) -> None:
    """Where a group begins that has no offset, or one that is not there any more."""
    fresh = [key for key in bounds if key not in committed]
    if fresh and reset == "latest":
        which = fresh[0].topic if len(fresh) == len(bounds) else _some(list(map(str, fresh)))
        output.tell(f"group {group} has no offset yet: {_FROM_END.format(what=which)}")
    lost = [
        f"{key} at {committed[key].offset}, it {_extent(bound)}"
        for key, bound in bounds.items()
        if key in committed and not _has(bound, committed[key].offset)
    ]
    if lost and reset in _PLACES:
        output.tell(
            f"offsets of group {group} are out of range: {_some(lost)}; reading goes on from the {_PLACES[reset]}"
        )


def _has(bound: Bounds, offset: int) -> bool:
    return bound.first <= offset <= bound.end


def _extent(bound: Bounds) -> str:
    return f"has {bound.first} to {bound.end - 1}" if bound.end > bound.first else "is empty"


def _some(listed: Sequence[str], most: int = 3) -> str:
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


class Silence:
    """Finds out why no records come. `group` is None for a reader that is no member."""

    def __init__(self, admin: "AsyncAdmin", topic: str, output: Output, group: str | None = None) -> None:
        self._admin = admin
        self._topic = topic
        self._output = output
        self._group = group
        self._polls_without_partitions = 0
        self._check_at = time.monotonic() + CHECK_SECONDS
        self._told = ""

    async def explain(self, consumer: Any) -> None:
        """Call it where nothing came. What was said last is said again only after something else was true."""
        self._look_at_assignment(consumer)
        if time.monotonic() < self._check_at:
            return
        try:
            found = await self._admin.describe_topics(self._topic, timeout=ANSWER_SECONDS)
            missing = isinstance(found.errors.get(self._topic), UnknownTopic)
            self._tell_once(
                f"topic {self._topic} does not exist any more: waiting for it (Ctrl-C ends)" if missing else ""
            )
        except BrokerUnavailable:
            self._tell_once("no broker answers: waiting for one (Ctrl-C ends)")
        except OttlaError as error:
            self._tell_once(str(error))
        self._check_at = time.monotonic() + CHECK_SECONDS

    def _look_at_assignment(self, consumer: Any) -> None:
        if self._group is None:
            return
        has_none = consumer.group_metadata().generation > 0 and not consumer.assignment
        self._polls_without_partitions = self._polls_without_partitions + 1 if has_none else 0
        if self._polls_without_partitions == POLLS_WITHOUT_PARTITIONS:
            self._output.tell(
                f"no partition of {self._topic} is assigned to this member of group {self._group}: other members read "
                "them all, and it takes over when one of them leaves (Ctrl-C ends)"
            )

    def _tell_once(self, text: str) -> None:
        if text and text != self._told:
            self._output.tell(text)
        self._told = text
