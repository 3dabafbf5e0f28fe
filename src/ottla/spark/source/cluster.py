"""The driver's questions to brokers: which partitions there are, where they begin and end, what times stand for.

Every answer is fresh: partitions that were added a moment ago are seen by the next micro-batch. A topic that does not
exist is asked for a few times (`fetchOffset.numRetries`), because it may have been made a moment ago.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from ottla.client.admin.offsets import OffsetSpec
from ottla.client.errors import BrokerUnavailable, NotAuthorized, OttlaError, UnknownTopic
from ottla.client.sync.reader_admin import ReaderAdmin
from ottla.client.types import TopicPartition
from ottla.spark.client_settings import client_settings
from ottla.spark.source.failures import OptionError, ReadFailed
from ottla.spark.source.limits import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    AtOffsets,
    AtTime,
    AtTimes,
    Earliest,
    Latest,
    Limit,
    Offsets,
    names_of,
)
from ottla.spark.source.options import SourceOptions

Answer = TypeVar("Answer")

# What brokers older than Kafka 2.8 have in its place.
_NO_TOPIC_ID = "A" * 22


class Resolved(NamedTuple):
    """Offsets, and those partitions where they are not given by the user but found at the end or the start of logs."""

    offsets: Offsets
    at_latest: frozenset[TopicPartition]
    at_earliest: frozenset[TopicPartition]


class Lookup:
    """Made where it is used, and closed there: it holds connections."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._admin: ReaderAdmin | None = None
        # Of the topics that were described last.
        self.topic_ids: dict[str, str] = {}

    @property
    def admin(self) -> ReaderAdmin:
        if self._admin is None:
            settings = {f"kafka.{name}": str(value) for name, value in self._options.settings.items()}
            self._admin = ReaderAdmin(config=client_settings(settings, role="admin"))
        return self._admin

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Partitions

    def partitions(self, *, known: Iterable[TopicPartition] = ()) -> frozenset[TopicPartition]:
        """Those that the options name and the cluster has. Topics of `known` may have been deleted meanwhile; others
        that do not exist are an error."""
        subscription = self._options.subscription
        if subscription.pattern is not None:
            pattern = re.compile(subscription.pattern)
            topics = self._asked(lambda: self.admin.list_topics())
            names = [topic.name for topic in topics if pattern.search(topic.name)]
        else:
            names = list(subscription.topics) or sorted({one.topic for one in subscription.partitions})
        found = self._described(names, {one.topic for one in known})
        return found & subscription.partitions if subscription.partitions else found

    def _described(self, names: list[str], may_be_gone: set[str]) -> frozenset[TopicPartition]:
        if not names:
            return frozenset()
        for attempt in range(self._options.lookup_attempts):
            if attempt:
                time.sleep(self._options.lookup_interval_ms / 1000)
            described = self._asked(lambda: self.admin.describe_topics(names))
            errors = {
                name: error
                for name, error in described.errors.items()
                if not (isinstance(error, UnknownTopic) and name in may_be_gone)
            }
            if not errors:
                break
            if not any(isinstance(error, UnknownTopic) or error.is_retriable for error in errors.values()):
                break
        for name, error in sorted(errors.items()):
            raise self._topic_error(name, error)
        self.topic_ids = {
            name: topic.topic_id for name, topic in described.succeeded.items() if topic.topic_id != _NO_TOPIC_ID
        }
        return frozenset(
            TopicPartition(name, partition.partition)
            for name, topic in described.succeeded.items()
            if not topic.is_internal
            for partition in topic.partitions
        )

    def _topic_error(self, name: str, error: OttlaError) -> OttlaError:
        if isinstance(error, UnknownTopic):
            option = str(self._options.subscription).split("=", 1)[0]
            return OptionError(
                f"option {option} names the topic {name!r}, which does not exist: create it first, or correct the name"
            )
        if isinstance(error, NotAuthorized):
            return ReadFailed(f"the topic {name!r} may not be read by this user: grant DESCRIBE and READ on it")
        return ReadFailed(f"the topic {name!r} cannot be read: {error}")

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Without those that were deleted meanwhile."""
        return self._edges(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    def latest(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, int] | None = None
    ) -> Offsets:
        """Without those that were deleted meanwhile. An answer below `known` is asked for again: a new leader may lag
        behind for a moment, and what is lower for good was made anew."""
        asked = dict.fromkeys(partitions, OffsetSpec.LATEST)
        for attempt in range(self._options.lookup_attempts):
            if attempt:
                time.sleep(self._options.lookup_interval_ms / 1000)
            found = self._edges(asked)
            if known is None or not any(offset < known.get(partition, 0) for partition, offset in found.items()):
                break
        return found

    def _edges(self, asked: Mapping[TopicPartition, OffsetSpec]) -> Offsets:
        return {partition: offset for partition, offset in self._listed(asked).items() if offset is not None}

    def _listed(self, asked: Mapping[TopicPartition, OffsetSpec | int]) -> dict[TopicPartition, int | None]:
        if not asked:
            return {}
        level = self._options.isolation_level
        listed = self._asked(lambda: self.admin.list_offsets(asked, isolation_level=level))
        for partition, error in sorted(listed.errors.items()):
            if not isinstance(error, UnknownTopic):
                raise ReadFailed(f"the offsets of {partition} cannot be asked for: {error}")
        return {key: None if found is None else found.offset for key, found in listed.succeeded.items()}

    def resolve(self, limit: Limit, partitions: frozenset[TopicPartition], *, is_start: bool) -> Resolved:
        """The offsets that a limit stands for now."""
        match limit:
            case Earliest():
                wanted = dict.fromkeys(partitions, EARLIEST_OFFSET)
            case Latest():
                wanted = dict.fromkeys(partitions, LATEST_OFFSET)
            case AtOffsets(offsets):
                self._check_named("startingOffsets" if is_start else "endingOffsets", offsets, partitions)
                wanted = dict(offsets)
            case AtTimes(times_ms):
                self._check_named(f"{'starting' if is_start else 'ending'}OffsetsByTimestamp", times_ms, partitions)
                wanted = self._at_times(times_ms, is_start=is_start)
            case AtTime(time_ms):
                wanted = self._at_times(dict.fromkeys(partitions, time_ms), is_start=is_start)
        at_latest = frozenset(one for one, offset in wanted.items() if offset == LATEST_OFFSET)
        at_earliest = frozenset(one for one, offset in wanted.items() if offset == EARLIEST_OFFSET)
        specs = dict.fromkeys(at_latest, OffsetSpec.LATEST) | dict.fromkeys(at_earliest, OffsetSpec.EARLIEST)
        return Resolved(wanted | self._edges(specs), at_latest, at_earliest)

    def _at_times(self, times_ms: Mapping[TopicPartition, int], *, is_start: bool) -> Offsets:
        found = self._listed(times_ms)
        for partition, offset in sorted(found.items()):
            if offset is None and is_start and self._options.on_no_time == "error":
                raise OptionError(
                    f"{partition} has no record from time {times_ms[partition]} on: begin earlier, or set "
                    "startingOffsetsByTimestampStrategy to latest to begin with the records that come next"
                )
        return {partition: LATEST_OFFSET if offset is None else offset for partition, offset in found.items()}

    def first_from(self, time_ms: int, ends: Mapping[TopicPartition, int]) -> Offsets:
        """The first record from a time on in each of these partitions; the end given where there is none."""
        found = self._listed(dict.fromkeys(ends, time_ms))
        return {one: ends[one] if offset is None else offset for one, offset in found.items()}

    def _check_named(
        self, option: str, named: Mapping[TopicPartition, int], partitions: frozenset[TopicPartition]
    ) -> None:
        missing, extra = partitions - named.keys(), named.keys() - partitions
        if missing:
            hint = "" if "Timestamp" in option else " (-1 is latest, -2 earliest)"
            raise OptionError(f"option {option} leaves out {names_of(missing)}: name every partition{hint}")
        if extra:
            raise OptionError(
                f"option {option} names {names_of(extra)}, which {self._options.subscription} does not read: such "
                "partitions do not exist, or are not subscribed to"
            )

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except BrokerUnavailable as error:
            servers = self._options.settings["bootstrap.servers"]
            raise ReadFailed(
                f"no broker answers at kafka.bootstrap.servers={servers}: see that it runs and the address is right "
                f"({error})"
            ) from None
