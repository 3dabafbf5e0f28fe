"""What a user asked of the source, checked the way Spark's Kafka connector checks it.

Where several options say where to begin, a time for all partitions comes before times by partition, and those before
offsets; so does it for the end. A batch begins at the earliest records unless told, a stream at the latest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql.datasource import CaseInsensitiveDict

from ottla.client.types import TopicPartition
from ottla.spark.client_settings import client_settings
from ottla.spark.source.failures import OptionError
from ottla.spark.source.limits import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    AtOffsets,
    AtTime,
    AtTimes,
    Earliest,
    Latest,
    Limit,
    names_of,
    parsed_offsets,
    parsed_partitions,
)
from ottla.spark.source.option_values import Phase, duration_ms, phase, refuse_slips, truth, whole_number

STRATEGIES: Final = ("subscribe", "assign", "subscribePattern")
_DEFAULT_POLL_TIMEOUT_MS = 120_000
_DEFAULT_TRIGGER_DELAY_MS = 15 * 60_000
_OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES_EXAMPLE = '{"topicA":{"0":1000,"1":2000}}'


@dataclass(frozen=True, slots=True)
class Subscription:
    """One of the three is set. A pattern has to be found in a name, not to match the whole of it."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: frozenset[TopicPartition] = frozenset()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern={self.pattern}"
        if self.partitions:
            return f"assign={names_of(self.partitions)}"
        return f"subscribe={','.join(self.topics)}"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """`settings` are those of clients, by Kafka's names."""

    settings: Mapping[str, object]
    subscription: Subscription
    starting: Limit
    ending: Limit
    on_no_time: Literal["error", "latest"]
    is_failing_on_loss: bool
    has_headers: bool
    value_format: Literal["json"] | None
    min_partitions: int | None
    max_records_per_partition: int | None
    min_records_per_partition: int
    reread_bytes: int
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    trigger_phase: Phase | None
    lookup_attempts: int
    lookup_interval_ms: int
    poll_timeout_ms: int
    offsets_group: str | None
    is_group_asked_for: bool

    @property
    def isolation_level(self) -> str:
        return str(self.settings.get("isolation.level", "read_uncommitted"))


def read_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """OptionError, with the name of the option and what to do, for what cannot be meant."""
    refuse_slips(options)
    view: Mapping[str, str] = CaseInsensitiveDict(options)
    subscription = _subscription(view)
    if is_stream:
        for name in ("endingOffsets", "endingOffsetsByTimestamp"):
            if name in view:
                raise OptionError(f"option {name} is for batch queries: a stream has no end, so leave it out")
    starting = _limit(view, "starting", Latest() if is_stream else Earliest())
    ending = Latest() if is_stream else _limit(view, "ending", Latest())
    if not is_stream:
        _check_batch(starting, ending)
    least = whole_number(view, "minOffsetsPerTrigger")
    most = whole_number(view, "maxOffsetsPerTrigger", at_least=1)
    if least is not None and most is not None and least > most:
        raise OptionError(f"option minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, which is {most}")
    settings = client_settings(view, role="source")
    asked_group = _stripped(view, "offsetsGroup")
    group = settings.pop("group.id", None)
    return SourceOptions(
        settings=settings,
        subscription=subscription,
        starting=starting,
        ending=ending,
        on_no_time=_strategy(view),
        is_failing_on_loss=truth(view, "failOnDataLoss", default=True),
        has_headers=truth(view, "includeHeaders", default=False),
        value_format=value_format_of(view),
        min_partitions=whole_number(view, "minPartitions", at_least=1),
        max_records_per_partition=whole_number(view, "maxRecordsPerPartition", at_least=1),
        min_records_per_partition=whole_number(view, "minRecordsPerPartition", at_least=0, default=0),
        reread_bytes=whole_number(view, "rereadBytes", at_least=0, default=0),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=duration_ms(view, "maxTriggerDelay", default_ms=_DEFAULT_TRIGGER_DELAY_MS),
        trigger_phase=phase(view, "triggerPhase"),
        lookup_attempts=max(whole_number(view, "fetchOffset.numRetries", default=3), 1),
        lookup_interval_ms=whole_number(view, "fetchOffset.retryIntervalMs", at_least=0, default=1000),
        poll_timeout_ms=whole_number(view, "kafkaConsumer.pollTimeoutMs", at_least=1, default=_DEFAULT_POLL_TIMEOUT_MS),
        offsets_group=asked_group or (None if group is None else str(group)),
        is_group_asked_for=asked_group is not None,
    )


def value_format_of(options: Mapping[str, str]) -> Literal["json"] | None:
    text = options.get("valueFormat")
    if text is None or text.strip().lower() in ("", "none", "binary"):
        return None
    if text.strip().lower() != "json":
        raise OptionError(f"option valueFormat is {text!r}: there is json, and binary, which leaves values as they are")
    return "json"


def _stripped(options: Mapping[str, str], name: str) -> str | None:
    text = options.get(name)
    if text is not None and not text.strip():
        raise OptionError(f"option {name} is empty: give it a value, or leave it out")
    return None if text is None else text.strip()


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in STRATEGIES if name in options]
    if len(given) != 1:
        which = "none was" if not given else f"{' and '.join(given)} were"
        raise OptionError(f"exactly one of the options {', '.join(STRATEGIES)} says what to read: {which} given")
    (name,) = given
    text = options[name]
    if name == "assign":
        return Subscription(partitions=parsed_partitions(name, text))
    if not text.strip(" ,"):
        raise OptionError(f"option {name} is {text!r}: name at least one topic")
    if name == "subscribe":
        return Subscription(topics=tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip())))
    try:
        re.compile(text.strip())
    except re.error as error:
        raise OptionError(f"option subscribePattern is {text!r}, which is no regular expression: {error}") from None
    return Subscription(pattern=text.strip())


def _strategy(options: Mapping[str, str]) -> Literal["error", "latest"]:
    text = (options.get("startingOffsetsByTimestampStrategy") or "error").strip().lower()
    if text == "latest":
        return "latest"
    if text != "error":
        raise OptionError(f"option startingOffsetsByTimestampStrategy is {text!r}: there are error and latest")
    return "error"


def _limit(options: Mapping[str, str], edge: Literal["starting", "ending"], default: Limit) -> Limit:
    for_all = whole_number(options, f"{edge}Timestamp", at_least=0)
    if for_all is not None:
        return AtTime(for_all)
    name = f"{edge}OffsetsByTimestamp"
    if name in options:
        times = parsed_offsets(name, options[name], _TIMES_EXAMPLE)
        if any(time < 0 for time in times.values()):
            raise OptionError(f"option {name} has a time before 1970: times are milliseconds since then")
        return AtTimes(times)
    name = f"{edge}Offsets"
    text = options.get(name)
    if text is None:
        return default
    match text.strip().lower():
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
    return AtOffsets(_checked_offsets(name, parsed_offsets(name, text, _OFFSETS_EXAMPLE)))


def _checked_offsets(name: str, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    for partition, offset in offsets.items():
        if offset < EARLIEST_OFFSET:
            raise OptionError(
                f"option {name} has {offset} for {partition}: -2 is earliest, -1 latest, others are from 0"
            )
    return offsets


def _check_batch(starting: Limit, ending: Limit) -> None:
    if isinstance(starting, Latest):
        raise OptionError("option startingOffsets is latest: a batch query cannot begin behind all records")
    if isinstance(ending, Earliest):
        raise OptionError("option endingOffsets is earliest: a batch query cannot end before all records")
    if isinstance(starting, AtOffsets):
        _refuse_word("startingOffsets", starting, LATEST_OFFSET, "latest")
    if isinstance(ending, AtOffsets):
        _refuse_word("endingOffsets", ending, EARLIEST_OFFSET, "earliest")
    if isinstance(starting, AtOffsets) and isinstance(ending, AtOffsets):
        _check_order("Offsets", starting.offsets, ending.offsets)
    if isinstance(starting, AtTimes) and isinstance(ending, AtTimes):
        _check_order("OffsetsByTimestamp", starting.times_ms, ending.times_ms)


def _refuse_word(name: str, limit: AtOffsets, word: int, meaning: str) -> None:
    for partition, offset in limit.offsets.items():
        if offset == word:
            raise OptionError(f"option {name} has {word} ({meaning}) for {partition}: not possible in a batch query")


def _check_order(what: str, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    if starts.keys() != ends.keys():
        odd = names_of(starts.keys() ^ ends.keys())
        raise OptionError(f"options starting{what} and ending{what} name different partitions: {odd} is in one only")
    for partition, start in sorted(starts.items()):
        if 0 <= ends[partition] < start:
            raise OptionError(f"option starting{what} has {start} for {partition}, behind its end at {ends[partition]}")
