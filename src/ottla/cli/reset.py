"""Where a group's offsets would go: the plan that is shown before anything is changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.cli.connecting import NotThere
from ottla.cli.positions import Bounds, Kind, Position, offset_of, parse_partitions
from ottla.client.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin


@dataclass(frozen=True, slots=True)
class Move:
    """`current` is None where the group has no offset; `lag` is what will be left to read."""

    partition: TopicPartition
    current: int | None
    new: int
    lag: int

    @property
    def change(self) -> int | None:
        return None if self.current is None else self.new - self.current

    def row(self) -> dict[str, object]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "current": self.current,
            "new": self.new,
            "change": self.change,
            "lag": self.lag,
        }


def planned(
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    bounds: Mapping[TopicPartition, Bounds],
    to: Position | None,
    by: int | None,
) -> list[Move]:
    """The moves, by partition: to a position, or by a number of records from the current offset (which must be
    there), never out of the partition."""
    moves = []
    for partition in sorted(bounds):
        bound = bounds[partition]
        current = committed[partition].offset if partition in committed else None
        if to is not None:
            new = offset_of(to, bound)
        elif current is None:
            raise NotThere(f"{partition} has no offset that could be moved: give --to instead of --by")
        else:
            new = min(max(current + (by or 0), bound.first), bound.end)
        moves.append(Move(partition, current, new, bound.end - new))
    return moves


def chosen(committed: Iterable[TopicPartition], topics: list[str], sizes: Mapping[str, int]) -> list[TopicPartition]:
    """Those that are meant: of the named topics (`orders`, or `orders:0,2-3`) all that there are, else all that
    the group has offsets for. `sizes` has the number of partitions of each named topic."""
    if not topics:
        return sorted(committed)
    wanted: set[TopicPartition] = set()
    for text in topics:
        name, separator, numbers = text.partition(":")
        whole = range(sizes[name])
        parts = parse_partitions(numbers) if separator else frozenset(whole)
        outside = sorted(part for part in parts if part not in whole)
        if outside:
            raise NotThere(f"{name} has no partition {outside[0]}: it has 0 to {sizes[name] - 1}")
        wanted |= {TopicPartition(name, part) for part in parts}
    return sorted(wanted)


async def bounds_of(
    admin: "AsyncAdmin",
    partitions: Iterable[TopicPartition],
    position: Position | None,
    isolation: str = "read_uncommitted",
) -> dict[TopicPartition, Bounds]:
    """What brokers say of these partitions, as far as a position asks for it."""
    from ottla.client.admin import OffsetSpec

    keys = list(partitions)
    firsts = (await admin.list_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST))).raise_for_errors()
    ends = (
        await admin.list_offsets(dict.fromkeys(keys, OffsetSpec.LATEST), isolation_level=isolation)
    ).raise_for_errors()
    at_times: dict[TopicPartition, int] = {}
    if position is not None and position.kind is Kind.TIME:
        found = (await admin.list_offsets(dict.fromkeys(keys, position.value))).raise_for_errors()
        at_times = {key: one.offset for key, one in found.items() if one is not None}
    bounds = {}
    for key in keys:
        first, end = firsts[key], ends[key]
        bounds[key] = Bounds(first.offset if first else 0, end.offset if end else 0, at_times.get(key))
    return bounds
