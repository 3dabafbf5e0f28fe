"""What users may hand in for partitions, offsets and times, turned into what is meant."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from ottla.client.consumer._twin import Record
from ottla.client.errors import ConfigError
from ottla.client.times import milliseconds_of
from ottla.client.types import OffsetAndMetadata, TopicPartition

Amount = TypeVar("Amount")

Partition = TopicPartition | tuple[str, int]
Place = Partition | tuple[str, int, int]
Time = int | datetime
# The keys of mappings are Partitions; type checkers take a mapping of pairs for no mapping of TopicPartitions.
ByPartition = Mapping[Any, Amount]
Committable = (
    ByPartition[int] | ByPartition[OffsetAndMetadata] | ByPartition[int | OffsetAndMetadata] | Record[Any, Any]
)


def partition_of(given: object) -> TopicPartition:
    """A TopicPartition, or the pair that it would be."""
    if isinstance(given, tuple) and len(given) == 2:
        topic, number = given
        if isinstance(topic, str) and topic and isinstance(number, int) and number >= 0:
            return TopicPartition(topic, number)
    raise ConfigError(f'a partition is a TopicPartition or a pair such as ("orders", 0), not {given!r}')


def partitions_of(given: Iterable[object] | None) -> list[TopicPartition] | None:
    """Several; one alone is taken as well. None stays None: all that are assigned."""
    if given is None:
        return None
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return [partition_of(given)]
    return list(dict.fromkeys(partition_of(one) for one in given))


def places_of(given: Iterable[object]) -> dict[TopicPartition, int | None]:
    """What `assign` takes: partitions, with an offset or without."""
    places: dict[TopicPartition, int | None] = {}
    for one in given:
        if isinstance(one, tuple) and len(one) == 3:
            places[partition_of(one[:2])] = offset_of(one[2])
        else:
            places[partition_of(one)] = None
    return places


def offset_of(given: object) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise ConfigError(f"an offset is a whole number from 0 on, not {given!r}")


def offsets_to_commit(given: Committable) -> dict[TopicPartition, OffsetAndMetadata]:
    """Of a record, the offset behind it; of a mapping, the offsets as they are."""
    if isinstance(given, Record):
        place = TopicPartition(given.topic, given.partition)
        return {place: OffsetAndMetadata(given.offset + 1, "", given.leader_epoch)}
    if not isinstance(given, Mapping):
        raise ConfigError(f"a record, or offsets by partition, can be committed, not {given!r}")
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, committed in given.items():
        stored = committed if isinstance(committed, OffsetAndMetadata) else OffsetAndMetadata(offset_of(committed))
        offset_of(stored.offset)
        offsets[partition_of(partition)] = stored
    return offsets


def milliseconds(given: Time) -> int:
    """A time as Kafka stamps records: milliseconds since the epoch. A datetime without a zone is local time."""
    if isinstance(given, datetime):
        return milliseconds_of(given)
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    hint = ": of seconds, write int(seconds * 1000)" if isinstance(given, float) else ""
    raise ConfigError(f"a time is a datetime or milliseconds since 1970 as an int, not {given!r}{hint}")
