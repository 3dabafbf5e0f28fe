"""Single options: their names as users know them, and values of the types that they have.

Option names have no case. One that Spark's connector does not know is ignored there, and here too, since Spark and
users put their own among them; but one that is nearly the name of an option is taken for a slip and refused.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, overload

from ottla.spark.source.failures import OptionError

_NAMES: Final = (
    "subscribe",
    "assign",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "minPartitions",
    "maxRecordsPerPartition",
    "minRecordsPerPartition",
    "rereadBytes",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "triggerPhase",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "partition.metadata.cache.ttl.ms",
    "valueFormat",
    "offsetsGroup",
)
_KNOWN: Final = {name.lower(): name for name in _NAMES}
_SLIP_CUTOFF = 0.87

_DURATION = re.compile(r"(?P<number>-?\d+)\s*(?P<unit>[a-z]*)", re.IGNORECASE)
_UNIT_MS: Final = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def refuse_slips(options: Mapping[str, str]) -> None:
    for name in options:
        lowered = name.lower()
        if lowered in _KNOWN or lowered.startswith("kafka."):
            continue
        near = difflib.get_close_matches(lowered, _KNOWN, n=1, cutoff=_SLIP_CUTOFF)
        if near:
            raise OptionError(f"there is no option {name!r}: did you mean {_KNOWN[near[0]]!r}?")


@overload
def whole_number(options: Mapping[str, str], name: str, *, at_least: int | None = None, default: int) -> int: ...


@overload
def whole_number(options: Mapping[str, str], name: str, *, at_least: int | None = None) -> int | None: ...


def whole_number(
    options: Mapping[str, str], name: str, *, at_least: int | None = None, default: int | None = None
) -> int | None:
    text = options.get(name)
    if text is None:
        return default
    try:
        number = int(text.strip())
    except ValueError:
        raise OptionError(f"option {name} is {text!r}: expected a whole number") from None
    if at_least is not None and number < at_least:
        raise OptionError(f"option {name} is {number}: it is at least {at_least}")
    return number


def truth(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise OptionError(f"option {name} is {text!r}: expected true or false")
    return lowered == "true"


def duration_ms(options: Mapping[str, str], name: str, *, default_ms: int) -> int:
    """As Spark writes times: `15m`, `100ms`, `3 h`; milliseconds without a unit."""
    text = options.get(name)
    if text is None:
        return default_ms
    found = _milliseconds(text)
    if found is None:
        raise OptionError(f"option {name} is {text!r}: expected a time such as 15m, 30s or 500ms")
    return found


def _milliseconds(text: str) -> int | None:
    found = _DURATION.fullmatch(text.strip())
    unit = (found["unit"] or "ms").lower() if found else ""
    return int(int(found["number"]) * _UNIT_MS[unit]) if found is not None and unit in _UNIT_MS else None


class Phase(NamedTuple):
    """`after_ms` behind every moment at which the clock shows a multiple of `every_ms`."""

    after_ms: int
    every_ms: int

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until the moment that belongs to the last multiple; none where that has passed."""
        return max(self.after_ms - now_seconds * 1000 % self.every_ms, 0.0) / 1000


def phase(options: Mapping[str, str], name: str) -> Phase | None:
    """`400ms of 2s`."""
    text = options.get(name)
    if text is None:
        return None
    after_ms, every_ms = map(_milliseconds, text.partition(" of ")[::2])
    if after_ms is None or every_ms is None or not 0 <= after_ms < every_ms:
        raise OptionError(f"option {name} is {text!r}: expected the time behind the trigger's, such as 400ms of 2s")
    return Phase(after_ms, every_ms)
