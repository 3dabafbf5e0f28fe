"""A stream of records into the lake, a micro-batch at a time.

The lake itself decides what is new, not the number of the batch: a batch that is repeated finds its offsets covered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.ingestion.compaction import compact
from ottla.pipelines.ingestion.files import record_schema, write_files
from ottla.pipelines.ingestion.lake import AlreadyCovered, Commit, Lake, LakeFile, LakeState, Partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# Spark has a null where a record has no headers, the lake an empty list.
_HEADERS = "array<struct<key: string, value: binary>>"
_PAIR = ("string", "bigint")


def ingest(batch: DataFrame, lake: Lake) -> None:
    """1. Leave out what the lake has. 2. Write the rest to files. 3. Publish them, with the offsets that they cover.
    4. Where an hour has many small files, make one of them.

    Where a load was faster, the lake has later offsets of a partition already: what is before them comes first, and
    then what is behind them."""
    headers = F.coalesce("headers", F.array().cast(_HEADERS))
    records = batch.withColumn("headers", headers).select(*record_schema().names)
    is_there_more = True
    while is_there_more:
        state = lake.state()
        is_there_more = any(state.next_range(one) is not None for one in state.covered)
        try:
            is_there_more &= _ingest_before_ranges(records, lake, state)
        except AlreadyCovered:
            # By a load, since we looked.
            is_there_more = True
    compact(lake)


def _ingest_before_ranges(records: DataFrame, lake: Lake, state: LakeState) -> bool:
    """What comes before the next range that the lake has in each partition; whether there was anything."""
    new = _new_records(records, state)
    files: list[LakeFile] = []
    ends: dict[Partition, int] = {}
    for (text,) in new.mapInArrow(_writer(lake.directory), "written STRING").collect():
        written = json.loads(text)
        files += [LakeFile(**file) for file in written["files"]]
        for topic, number, end in written["ends"]:
            ends[topic, number] = max(ends.get((topic, number), 0), end)
    if not files:
        return False
    # From the cut on: what a stream passed over in between is no record, but the end of a transaction.
    lake.publish(Commit(tuple(files), covered={one: (state.cut(one), end) for one, end in ends.items()}))
    return True


def _new_records(batch: DataFrame, state: LakeState) -> DataFrame:
    """From the cut on, up to the next range that the lake has."""
    if not state.covered:
        return batch
    cut = _by_partition({one: state.cut(one) for one in state.covered})
    end = _by_partition({one: state.next_range(one) for one in state.covered})
    is_behind_cut = F.col("offset") >= F.coalesce(cut, F.lit(0))
    return batch.where(is_behind_cut & F.coalesce(F.col("offset") < end, F.lit(True)))


def _by_partition(offsets: Mapping[Partition, int | None]) -> Column:
    """The offset of the partition that a row is of, or null."""
    pairs = ((_name(*partition), offset) for partition, offset in offsets.items())
    known = F.create_map(*(F.lit(part).cast(kind) for pair in pairs for part, kind in zip(pair, _PAIR, strict=True)))
    return known[F.concat_ws("/", "partition", "topic")]


def _name(topic: str, number: int) -> str:
    return f"{number}/{topic}"


def _writer(lake: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        ends: list[tuple[str, int, int]] = []

        def noted() -> Iterator[pa.Table]:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                ends.extend(_ends_of(table))
                yield table

        files = write_files(lake, noted())
        text = json.dumps({"files": [asdict(file) for file in files], "ends": ends})
        yield pa.RecordBatch.from_pydict({"written": [text]})

    return write


def _ends_of(table: pa.Table) -> Iterator[tuple[str, int, int]]:
    last: list[dict[str, Any]] = table.group_by(["topic", "partition"]).aggregate([("offset", "max")]).to_pylist()
    for row in last:
        yield row["topic"], row["partition"], row["offset_max"] + 1
