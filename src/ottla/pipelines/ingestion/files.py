"""Records as Parquet files of the lake, from Arrow to Parquet with no row in between."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ottla.pipelines.ingestion.durable import sync_below
from ottla.pipelines.ingestion.state import FOLDERS, LakeFile

if TYPE_CHECKING:
    import pyarrow as pa

# Records come in batches of any size, and readers of Parquet like groups that are worth a look.
_LEAST_ROWS_A_GROUP = 16_000
_MOST_ROWS_A_GROUP = 128_000
# What is written at a time may be of many hours.
_MOST_OPEN_FILES = 64


def record_schema() -> pa.Schema:
    """The columns of a record in the lake; topic, date and hour are in the names of the folders."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(header)),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
        ]
    )


def write_files(lake: Path, tables: Iterable[pa.Table]) -> list[LakeFile]:
    """Records of any topics and hours, each into a file of its topic, date and hour. They are on the disk when this
    returns, and count once published."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    written: list[LakeFile] = []

    def note(file: Any) -> None:
        path = Path(file.path).relative_to(lake)
        topic, date, hour = (unquote(part.partition("=")[2]) for part in path.parts[: len(FOLDERS)])
        now_ms = int(time.time() * 1000)
        written.append(LakeFile(str(path), topic, date, hour, file.metadata.num_rows, file.size, now_ms))

    schema = record_schema().append(pa.field("date", pa.string())).append(pa.field("hour", pa.string()))
    parquet = ds.ParquetFileFormat()
    ds.write_dataset(
        (batch for table in tables for batch in _with_hours(table).to_batches()),
        lake,
        schema=schema,
        format=parquet,
        file_options=parquet.make_write_options(compression="zstd"),
        partitioning=ds.partitioning(pa.schema([schema.field(name) for name in FOLDERS]), flavor="hive"),
        basename_template=f"{uuid.uuid4().hex}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_open_files=_MOST_OPEN_FILES,
        min_rows_per_group=_LEAST_ROWS_A_GROUP,
        max_rows_per_group=_MOST_ROWS_A_GROUP,
        file_visitor=note,
    )
    sync_below(lake, (file.path for file in written))
    return written


def read_table(lake: Path, files: Iterable[LakeFile]) -> pa.Table:
    """The records of these files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [name for name in record_schema().names if name != "topic"]
    tables = []
    for file in files:
        # One file at a time: folders that look like columns are of no interest, since the file's entry has them.
        with (lake / file.path).open("rb") as opened:
            table = pq.read_table(opened, columns=columns)
        topic = pa.repeat(pa.scalar(file.topic, pa.string()), table.num_rows)
        tables.append(table.append_column("topic", topic).select(record_schema().names).cast(record_schema()))
    return pa.concat_tables(tables) if tables else record_schema().empty_table()


def _with_hours(table: pa.Table) -> pa.Table:
    """With the date and the hour of each record's timestamp, in UTC."""
    import pyarrow.compute as pc

    records = table.select(record_schema().names).cast(record_schema())
    timestamps = records.column("timestamp")
    return records.append_column("date", pc.strftime(timestamps, "%Y-%m-%d")).append_column(
        "hour", pc.strftime(timestamps, "%H")
    )
