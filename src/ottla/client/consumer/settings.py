"""What the state machines need of a consumer's configuration, in the units that they use."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from ottla.client.config import ConsumerConfig
from ottla.client.consumer.values import OffsetSpec

_DURATION = re.compile(
    r"by_duration:P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>[\d.]+)S)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """Where to begin without a committed offset (`auto.offset.reset`). `name` is none for an error instead."""

    name: str

    @property
    def is_none(self) -> bool:
        return self.name == "none"

    def time_ms(self, now_ms: int) -> int:
        """What to ask ListOffsets for: the start, the end, or a time."""
        if self.name == "earliest":
            return OffsetSpec.EARLIEST
        if self.name == "latest":
            return OffsetSpec.LATEST
        found = _DURATION.fullmatch(self.name)
        if found is None:
            raise ValueError(f"earliest, latest or by_duration: expected, {self.name!r} came")
        parts = {unit: float(number) for unit, number in found.groupdict().items() if number}
        return max(now_ms - int(timedelta(**parts).total_seconds() * 1000), 0)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    prefetch_bytes: int = 25_165_824
    is_read_committed: bool = False
    check_crcs: bool = True
    client_rack: str = ""
    retry_backoff_seconds: float = 0.1
    metadata_max_age_seconds: float = 300.0
    reset: ResetPolicy = ResetPolicy("latest")

    @classmethod
    def of(cls, config: ConsumerConfig) -> Self:
        return cls(
            fetch_min_bytes=config.fetch_min_bytes,
            fetch_max_bytes=config.fetch_max_bytes,
            fetch_max_wait_ms=config.fetch_max_wait_ms,
            max_partition_fetch_bytes=config.max_partition_fetch_bytes,
            prefetch_bytes=config.prefetch_bytes,
            is_read_committed=config.isolation_level == "read_committed",
            check_crcs=config.check_crcs,
            client_rack=config.client_rack or "",
            retry_backoff_seconds=config.retry_backoff_ms / 1000,
            metadata_max_age_seconds=config.metadata_max_age_ms / 1000,
            reset=ResetPolicy(config.auto_offset_reset),
        )
