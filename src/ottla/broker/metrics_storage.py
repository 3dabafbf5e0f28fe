"""Metrics of what may go wrong with stored bytes: damage that was found in logs, and Kafka's own of the cleaner."""

from collections.abc import Iterator, Sequence

from ottla.broker.metrics_text import COUNTER, GAUGE, Family
from ottla.log.cleaner import LogCleaner
from ottla.log.directory import LogDirectory


def _cleaner(name: str, text: str) -> Family:
    return Family(f"kafka_log_logcleaner_{name}", GAUGE, text)


def _manager(name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(f"kafka_log_logcleanermanager_{name}", GAUGE, text, labels)


CUT_BYTES = Family(
    "ottla_log_cut_bytes_total",
    COUNTER,
    "Bytes that recovery cut off the ends of logs; the log says which.",
    ("directory",),
)
DAMAGED_BYTES = Family(
    "ottla_log_damaged_bytes_total",
    COUNTER,
    "Bytes found damaged when logs were opened, and left in their place.",
    ("directory",),
)
UNCLEANABLE_PARTITIONS = _manager(
    "uncleanable_partitions_count", "Logs that cannot be compacted because of what is in them.", ("logDirectory",)
)
UNCLEANABLE_BYTES = _manager("uncleanable_bytes", "Bytes of theirs that wait for it.", ("logDirectory",))
MAX_DIRTY = _manager("max_dirty_percent", "Share of dirty bytes in the dirtiest log, when they were looked at last.")
SINCE_LAST_RUN = _manager("time_since_last_run_ms", "Milliseconds since the cleaner looked for a log to clean.")
RECOPY = _cleaner("cleaner_recopy_percent", "Bytes written by the last cleaning, as a share of those read.")
CLEAN_TIME = _cleaner("max_clean_time_secs", "Seconds that the last cleaning took.")
BUFFER = _cleaner("max_buffer_utilization_percent", "How full the map of keys was in the last cleaning.")
DELAY = _cleaner("max_compaction_delay_secs", "How much later than max.compaction.lag.ms the last cleaning came.")
DEAD_THREADS = _cleaner("deadthreadcount", "1 when the cleaner ended by a mistake of its own; the log has it.")

FAMILIES = (
    CUT_BYTES,
    DAMAGED_BYTES,
    UNCLEANABLE_PARTITIONS,
    UNCLEANABLE_BYTES,
    MAX_DIRTY,
    SINCE_LAST_RUN,
    RECOPY,
    CLEAN_TIME,
    BUFFER,
    DELAY,
    DEAD_THREADS,
)


def damage_lines(directories: Sequence[LogDirectory]) -> Iterator[str]:
    yield CUT_BYTES.head
    for directory in directories:
        yield CUT_BYTES.line(directory.cut_bytes, directory.path)
    yield DAMAGED_BYTES.head
    for directory in directories:
        yield DAMAGED_BYTES.line(directory.damaged_bytes, directory.path)


def cleaner_lines(cleaner: LogCleaner, directories: Sequence[LogDirectory], now: float) -> Iterator[str]:
    """`now` is of the clock that the cleaner was given, the monotonic one."""
    found = [(directory.path, *cleaner.uncleanable(directory)) for directory in directories]
    yield UNCLEANABLE_PARTITIONS.head
    for path, count, _ in found:
        yield UNCLEANABLE_PARTITIONS.line(count, path)
    yield UNCLEANABLE_BYTES.head
    for path, _, size_bytes in found:
        yield UNCLEANABLE_BYTES.line(size_bytes, path)
    stats = cleaner.stats
    waited = 0.0 if stats.last_look is None else now - stats.last_look
    for family, value in (
        (MAX_DIRTY, 100 * stats.dirtiest_ratio),
        (SINCE_LAST_RUN, 1000 * waited),
        (RECOPY, 100 * stats.recopy_ratio),
        (CLEAN_TIME, stats.seconds),
        (BUFFER, 100 * stats.map_utilization),
        (DELAY, stats.overdue_ms / 1000),
        (DEAD_THREADS, int(stats.is_dead)),
    ):
        yield family.head + family.line(value)
