"""How the tests of the source write topics, and read them with `format("ottla")` and with Spark's own connector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.spark.conftest import Target, require_connector

from ottla import Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIME_MS = 1_700_000_000_000


def write(
    target: Target, topic: str, values: Iterable[bytes | None], *, partition: int = 0, codec: str = "none"
) -> None:
    """One record a value, a second apart; keys come again, and every third record has headers."""
    with Producer(target.bootstrap, compression_type=codec, linger_ms=5) as producer:
        for number, value in enumerate(values):
            producer.send(
                topic,
                value,
                key=None if number % 5 == 0 else b"key %d" % (number % 7),
                partition=partition,
                timestamp=FIRST_TIME_MS + 1000 * number,
                headers=[("n", b"%d" % number), ("empty", b""), ("n", None)] if number % 3 == 0 else None,
            )


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"value %d" % number for number in range(first, first + count)]


def reader(source: Any, name: str, target: Target, **options: object) -> Any:
    """`spark.read` or `spark.readStream` with a format; underscores stand for dots in `kafka_...` options."""
    require_connector(name)
    made = source.format(name).option("kafka.bootstrap.servers", target.bootstrap)
    for option, value in options.items():
        made = made.option(option.replace("_", ".") if option.startswith("kafka_") else option, str(value))
    return made


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """Rows as tuples, in the order of the log."""
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: row[2:5])


def same_rows(spark: Any, target: Target, **options: object) -> list[tuple[Any, ...]]:
    """Read with both formats; what they agree on."""
    ours = reader(spark.read, "ottla", target, **options).load()
    theirs = reader(spark.read, "kafka", target, **options).load()
    assert ours.schema == theirs.schema
    found, expected = rows_of(ours), rows_of(theirs)
    assert found == expected
    return found


class Query:
    """A streaming query that is run again and again from its checkpoint, and what its batches had."""

    def __init__(self, spark: Any, target: Target, checkpoint: Path, **options: object) -> None:
        self._spark = spark
        self._target = target
        self._checkpoint = checkpoint
        self._options = options
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.on_batch: Callable[[], object] = lambda: None

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return sorted((row for batch in self.batches.values() for row in batch), key=lambda row: row[2:5])

    @property
    def sizes(self) -> list[int]:
        return [len(rows) for _, rows in sorted(self.batches.items())]

    def run(self, name: str = "ottla", **changed: object) -> Any:
        """Until all that is there was read; returns the query, which has ended."""
        query = self.start(name, {"availableNow": True}, **changed)
        query.awaitTermination(120)
        assert not query.isActive
        return query

    def start(self, name: str = "ottla", trigger: dict[str, Any] | None = None, **changed: object) -> Any:
        def collect(frame: Any, number: int) -> None:
            self.on_batch()
            self.batches[number] = [tuple(row) for row in frame.collect()]

        stream = reader(self._spark.readStream, name, self._target, **{**self._options, **changed}).load()
        writer = stream.writeStream.foreachBatch(collect).option("checkpointLocation", str(self._checkpoint))
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()
