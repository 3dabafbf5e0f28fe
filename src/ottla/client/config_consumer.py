"""The settings of a consumer."""

import re
from dataclasses import dataclass, replace
from typing import Any, Self

from ottla.client.config_client import ClientConfig
from ottla.client.config_settings import NOT_EMPTY, Check, Kind, at_least, one_of, setting
from ottla.client.errors import ConfigError

_BOOLEAN, _INT, _LONG, _STRING, _OBJECT = Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.STRING, Kind.OBJECT
_DURATION = re.compile(r"by_duration:P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", re.IGNORECASE)


def _is_offset_reset(value: str) -> bool:
    return value in ("earliest", "latest", "none") or _DURATION.fullmatch(value) is not None


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """The settings of a consumer. `prefetch_bytes` is Ottla's own: how much may be buffered ahead of the reader."""

    client_id: str = setting("client.id", _STRING, "ottla-consumer", "A name for quotas, metrics and logs.")
    group_id: str | None = setting("group.id", _STRING, None, "The group that this consumer is a member of.")
    group_instance_id: str | None = setting(
        "group.instance.id",
        _STRING,
        None,
        "Makes the member static: it keeps its partitions when it comes back.",
        NOT_EMPTY,
    )
    group_protocol: str = setting(
        "group.protocol", _STRING, "classic", "Which protocol the group speaks.", one_of("classic", "consumer")
    )
    group_remote_assignor: str | None = setting(
        "group.remote.assignor", _STRING, None, "The broker's assignor, with group.protocol=consumer."
    )
    partition_assignment_strategy: Any = setting(
        "partition.assignment.strategy",
        _OBJECT,
        ("range", "cooperative-sticky"),
        "The assignors of group.protocol=classic, the preferred one first.",
    )
    session_timeout_ms: int = setting(
        "session.timeout.ms", _INT, 45_000, "When a silent member counts as gone.", at_least(1)
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms", _INT, 3_000, "How often a member is heard of.", at_least(1)
    )
    max_poll_interval_ms: int = setting(
        "max.poll.interval.ms", _INT, 300_000, "How long user code may work between two calls.", at_least(1)
    )
    max_poll_records: int = setting("max.poll.records", _INT, 500, "The most records of one poll.", at_least(1))
    enable_auto_commit: bool = setting(
        "enable.auto.commit", _BOOLEAN, True, "Whether positions are committed by themselves."
    )
    auto_commit_interval_ms: int = setting("auto.commit.interval.ms", _INT, 5_000, "How often they are.", at_least(0))
    auto_offset_reset: str = setting(
        "auto.offset.reset",
        _STRING,
        "latest",
        "Where to begin when nothing is committed.",
        Check(_is_offset_reset, "earliest, latest, none, or by_duration: with an ISO 8601 duration such as P1DT2H"),
    )
    isolation_level: str = setting(
        "isolation.level",
        _STRING,
        "read_uncommitted",
        "Whether records of open and aborted transactions are seen.",
        one_of("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes: int = setting("fetch.min.bytes", _INT, 1, "A broker waits until it has so much.", at_least(0))
    fetch_max_bytes: int = setting("fetch.max.bytes", _INT, 52_428_800, "The most bytes of one answer.", at_least(0))
    fetch_max_wait_ms: int = setting("fetch.max.wait.ms", _INT, 500, "The longest such wait.", at_least(0))
    max_partition_fetch_bytes: int = setting(
        "max.partition.fetch.bytes", _INT, 1_048_576, "The most bytes of one partition in an answer.", at_least(0)
    )
    prefetch_bytes: int = setting(
        "prefetch.bytes", _LONG, 25_165_824, "The most bytes that are buffered ahead of the reader.", at_least(1)
    )
    check_crcs: bool = setting("check.crcs", _BOOLEAN, True, "Whether checksums of batches are checked.")
    exclude_internal_topics: bool = setting(
        "exclude.internal.topics", _BOOLEAN, True, "Whether a pattern never matches internal topics."
    )
    allow_auto_create_topics: bool = setting(
        "allow.auto.create.topics", _BOOLEAN, True, "Whether subscribing may create a topic, where brokers allow that."
    )
    key_deserializer: Any = setting("key.deserializer", _OBJECT, None, "Turns bytes into keys.")
    value_deserializer: Any = setting("value.deserializer", _OBJECT, None, "Turns bytes into values.")

    @property
    def creates_topics(self) -> bool:
        return self.allow_auto_create_topics

    def settled(self, given: frozenset[str]) -> Self:
        settled = super().settled(given)
        if settled.group_id is None:
            if "enable_auto_commit" in given and settled.enable_auto_commit:
                raise ConfigError("enable.auto.commit needs group.id: offsets are committed to a group")
            settled = replace(settled, enable_auto_commit=False)
        if settled.group_protocol == "classic":
            if settled.group_remote_assignor:
                raise ConfigError(
                    "group.remote.assignor needs group.protocol=consumer; use partition.assignment.strategy"
                )
        else:
            for name in ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy"):
                if name in given:
                    raise ConfigError(
                        f"{name.replace('_', '.')} is the broker's with group.protocol=consumer: leave it out"
                    )
        return settled
