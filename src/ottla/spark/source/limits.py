"""Where a read begins and where it ends: a word, offsets or times; and offsets as the JSON that Spark keeps.

An offset map is `{"topic": {"0": 5}}`, partitions as strings, as in the checkpoints of Spark's connector: a query may
change between the two. Offsets are those of the next record.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.client.types import TopicPartition
from ottla.spark.source.failures import OptionError

# In maps of offsets that a user writes.
LATEST_OFFSET: Final = -1
EARLIEST_OFFSET: Final = -2

Offsets = dict[TopicPartition, int]
# As Spark keeps it.
OffsetMap = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first records that are there."""


@dataclass(frozen=True, slots=True)
class Latest:
    """Behind the last records."""


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """These offsets, some of which may be LATEST_OFFSET or EARLIEST_OFFSET."""

    offsets: Mapping[TopicPartition, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first records from a time on, in milliseconds, for each partition."""

    times_ms: Mapping[TopicPartition, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class AtTime:
    """The same for all partitions."""

    time_ms: int


Limit = Earliest | Latest | AtOffsets | AtTimes | AtTime


def to_offset_map(offsets: Mapping[TopicPartition, int]) -> OffsetMap:
    """Sorted: Spark compares offsets by the text of their JSON."""
    made: OffsetMap = {}
    for (topic, partition), offset in sorted(offsets.items()):
        made.setdefault(topic, {})[str(partition)] = offset
    return made


def from_offset_map(offsets: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }


def parsed_offsets(option: str, text: str, example: str) -> Offsets:
    """An option that maps partitions to numbers; OptionError with `example` where it does not."""
    found = _parsed(option, text, example)
    try:
        offsets = {
            TopicPartition(topic, int(partition)): offset
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, ValueError):
        raise _unreadable(option, text, example) from None
    if not all(isinstance(offset, int) and not isinstance(offset, bool) for offset in offsets.values()):
        raise _unreadable(option, text, example)
    return offsets


def parsed_partitions(option: str, text: str) -> frozenset[TopicPartition]:
    example = '{"topicA":[0,1],"topicB":[2,4]}'
    found = _parsed(option, text, example)
    try:
        partitions = {TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers}
    except TypeError:
        raise _unreadable(option, text, example) from None
    if not partitions or not all(isinstance(one.partition, int) and one.partition >= 0 for one in partitions):
        raise _unreadable(option, text, example)
    return frozenset(partitions)


def _parsed(option: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise _unreadable(option, text, example) from None
    if not isinstance(found, dict):
        raise _unreadable(option, text, example)
    return found


def _unreadable(option: str, text: str, example: str) -> OptionError:
    return OptionError(f"option {option} is {text!r}: expected JSON such as {example}")


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """For messages: sorted, and not without an end."""
    names = [str(partition) for partition in sorted(partitions)]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
