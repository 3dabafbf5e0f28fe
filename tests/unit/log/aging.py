"""A log with two records in each segment, and what is left of it."""

from tests.unit.log.support import START_MS, Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.records import read_records

DAY_MS = 86_400_000
BATCH_BYTES = len(batch_of([b"00"]))
# Two batches of two bytes each.
SEGMENT_BYTES = 2 * BATCH_BYTES
FOR_EVER = {"retention_ms": -1, "file_delete_delay_ms": 0, "segment_bytes": SEGMENT_BYTES}


def settings(**changes: object) -> LogConfig:
    return LogConfig(**{**FOR_EVER, **changes})  # type: ignore[arg-type]  # the fields' own types


async def filled(rig: Rig, count: int = 9, *, timestamp: int = START_MS, **batch: int) -> Log:
    """A log with one record in each batch and two batches in each segment, all of it below the high watermark."""
    log = await rig.open()
    for number in range(count):
        await append(log, batch_of([b"%02d" % number], timestamp=timestamp, **batch))  # type: ignore[arg-type]
    log.high_watermark = log.log_end_offset
    return log


def base_offsets(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def names(rig: Rig, suffix: str) -> list[str]:
    return [name for name in rig.disk.list_directory(rig.log_path) if name.endswith(suffix)]


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in read_records(read_all(log))]


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%02d" % number for number in range(first, end)]
