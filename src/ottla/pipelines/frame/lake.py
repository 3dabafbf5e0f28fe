"""Rows for the lake: Parquet files in folders by columns, each row once, also where a micro-batch is repeated.

Tasks write their rows to files that nobody sees yet; the driver adds the files of a batch to Spark's own log of a file
sink (`_spark_metadata`), under the batch's number. So a batch that is repeated finds itself there, and whatever reads
the folder with Spark sees whole batches. What a task wrote that failed is in no log.

The log numbers batches of all queries that ever wrote to the folder. So a query whose checkpoint is new begins behind
the last number that is there, and remembers where that was in its checkpoint (`checkpoints`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PREFIX = "lake_"
_METADATA = "_spark_metadata"
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# What the names of folders have besides letters and digits, as Spark writes them.
_UNQUOTED = " !$&()+,-.;@_`|~"


class Written(NamedTuple):
    """A file that a task has written."""

    table: str
    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True)
class LakeTable:
    """`directory` is where its files are, on a disk that driver and executors share."""

    name: str
    directory: str
    partition_by: tuple[str, ...]

    @property
    def column(self) -> str:
        """In which its rows come, beside those for topics."""
        return f"{PREFIX}{self.name}"


@dataclass(frozen=True)
class LakeTasks:
    """Makes what takes the lake's rows out of a task's; sent to every task."""

    tables: tuple[LakeTable, ...]

    def __call__(self, batch_number: int) -> "LakeTask":
        return LakeTask(self.tables, batch_number)


class LakeTask:
    """Takes the rows of the lake out of the batches of one task, and writes them to files: one for each folder."""

    def __init__(self, tables: Sequence[LakeTable], batch_number: int) -> None:
        self._tables = tables
        self._batch_number = batch_number
        self._rows: dict[LakeTable, list[pa.RecordBatch]] = {table: [] for table in tables}

    def take(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa
        import pyarrow.compute as pc

        for table in self._tables:
            column = batch.column(table.column)
            if column.null_count < len(column):
                rows = column.filter(pc.is_valid(column))
                self._rows[table].append(pa.RecordBatch.from_struct_array(rows))
        for_topics = batch.filter(pc.is_valid(batch.column("topic")))
        return for_topics.select(["topic", "key", "value"])

    def finish(self) -> list[Written]:
        return [file for table, rows in self._rows.items() if rows for file in self._written(table, rows)]

    def _written(self, table: LakeTable, rows: "list[pa.RecordBatch]") -> "Iterator[Written]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        for folder, part in _by_folder(pa.Table.from_batches(rows), table.partition_by):
            directory = Path(table.directory) / folder
            directory.mkdir(parents=True, exist_ok=True)
            name = f"part-{self._batch_number:05}-{uuid4()}.snappy.parquet"
            hidden, path = directory / f".{name}.tmp", directory / name
            pq.write_table(part, hidden, compression="snappy")
            hidden.rename(path)
            found = path.stat()
            yield Written(table.name, str(path), found.st_size, int(found.st_mtime * 1000))


def _by_folder(rows: "pa.Table", columns: Sequence[str]) -> "Iterator[tuple[str, pa.Table]]":
    import pyarrow as pa
    import pyarrow.compute as pc

    if not columns:
        yield "", rows
        return
    folders = rows.select(list(columns)).group_by(list(columns)).aggregate([])
    for values in folders.to_pylist():
        chosen = pa.scalar(True)
        for name, value in values.items():
            column = rows.column(name)
            same = (
                pc.is_null(column)
                if value is None
                else pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
            )
            chosen = pc.and_(chosen, same)
        yield (
            "/".join(f"{name}={_folder(value)}" for name, value in values.items()),
            rows.filter(chosen).drop_columns(list(columns)),
        )


def _folder(value: Any) -> str:
    return _NULL_FOLDER if value is None else quote(str(value), safe=_UNQUOTED)


class LakeLog:
    """What is part of a table: Spark's log of its file sink, which Spark's own code keeps."""

    def __init__(self, spark: "SparkSession", directory: str) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
        self._file: Any = jvm.java.io.File
        self._log = self._sinks.FileStreamSinkLog(
            1, spark._jsparkSession, f"{directory}/{_METADATA}", jvm.scala.Option.empty()
        )

    @property
    def next_number(self) -> int:
        """Behind all that are there."""
        latest = self._log.getLatestBatchId()
        return int(latest.get()) + 1 if latest.isDefined() else 0

    def add(self, number: int, files: Sequence[Written]) -> None:
        """Under this number; nothing where it is there already."""
        if number < self.next_number:
            return
        entries = self._gateway.new_array(self._sinks.SinkFileStatus, len(files))
        for place, one in enumerate(files):
            entries[place] = self._sinks.SinkFileStatus(
                self._file(one.path).toURI().toString(),
                one.size_bytes,
                False,
                one.modified_ms,
                1,
                one.size_bytes,
                "add",
            )
        self._log.add(number, entries)


def settled(
    logs: Mapping[str, LakeLog], first_numbers: Mapping[str, int], number: int, told: Sequence[list[Written]]
) -> None:
    """Make the files of a micro-batch part of their tables. A batch without rows is written down, too: numbers have no
    gaps."""
    files = [file for task in told for file in task]
    for table, log in logs.items():
        log.add(first_numbers[table] + number, [file for file in files if file.table == table])
