"""A stream of records into the lake, a micro-batch at a time.

The lake itself decides what is new, not the number of the batch: a batch that is repeated finds its offsets covered.

A batch has all records of its partitions behind those of the batch before. So once its records are in the lake, all
offsets up to its last record are taken care of, also those that no record has: ends of transactions, records that were
aborted, compacted away, or deleted. What a load has of them already, anywhere, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.ingestion.compaction import compact
from ottla.pipelines.ingestion.coverage import Partition, Range, gaps, spans, without_covered
from ottla.pipelines.ingestion.files import record_schema, write_files
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import AlreadyCovered, Commit, GivenUp, LakeFile, LakeState
from ottla.pipelines.ingestion.topics import ids_of_those_there

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# Spark has a null where a record has no headers, the lake an empty list.
_HEADERS = "array<struct<key: string, value: binary>>"
# Whoever makes every hundredth commit looks through the folders for what can be deleted.
VACUUM_EVERY = 100
# Topics that get a file with every micro-batch have enough small ones at the same moment.
COMPACTED_AT_ONCE = 4

Covered = Mapping[Partition, list[Range]]


class Written(NamedTuple):
    """What a batch has: the files of what is new, and of each partition the offset behind its last record."""

    files: list[LakeFile]
    ends: dict[Partition, int]


def ingest(batch: DataFrame, lake: Lake, brokers: Mapping[str, object]) -> None:
    """1. Leave out what the lake has. 2. Write the rest to files. 3. Publish them, with the offsets that they cover.
    4. Where hours have many small files, put those of a few together. 5. From time to time, delete what is no part of
    the lake any more.

    `brokers` are settings of a client that reaches them. Raises TopicReplaced."""
    headers = F.coalesce("headers", F.array().cast(_HEADERS))
    records = batch.withColumn("headers", headers).select(*record_schema().names)
    before = state = lake.state()
    while not _is_ingested(records, lake, state, brokers):
        state = lake.state()
    compact(lake, most_groups=COMPACTED_AT_ONCE)
    if lake.state().version // VACUUM_EVERY > before.version // VACUUM_EVERY:
        lake.vacuum()


def _is_ingested(records: DataFrame, lake: Lake, state: LakeState, brokers: Mapping[str, object]) -> bool:
    """False where the lake has changed meanwhile, so that it has to be done again."""
    written = _write(records, lake, state.covered)
    missing = {one: list(gaps(state.covered.get(one, ()), 0, end)) for one, end in written.ends.items()}
    commit = Commit(
        tuple(written.files),
        covered={one: ranges for one, ranges in missing.items() if ranges},
        topics=ids_of_those_there(brokers, {topic for topic, _ in written.ends}) if written.ends else {},
    )
    if not commit.covered:
        # Offsets of another topic of that name are no reason to leave out a record.
        state.check_topics(commit.topics)
        return True
    try:
        lake.publish(commit)
    except (AlreadyCovered, GivenUp):
        # By a load, since we looked; or the batch took longer than anybody expects.
        return False
    return True


def _write(records: DataFrame, lake: Lake, covered: Covered) -> Written:
    written = Written([], {})
    for (text,) in records.mapInArrow(_writer(lake.directory, covered), "written STRING").collect():
        found = json.loads(text)
        written.files.extend(LakeFile(**file) for file in found["files"])
        for topic, number, end in found["ends"]:
            written.ends[topic, number] = max(written.ends.get((topic, number), 0), end)
    return written


def _writer(lake: Path, covered: Covered) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        ends: list[tuple[str, int, int]] = []

        def new() -> Iterator[pa.Table]:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                ends.extend((*partition, end) for partition, (_, end) in spans(table))
                yield without_covered(table, covered)

        files = write_files(lake, new())
        text = json.dumps({"files": [asdict(file) for file in files], "ends": ends})
        yield pa.RecordBatch.from_pydict({"written": [text]})

    return write
