"""The lake as a Delta table, read by a reader of Delta that knows nothing of the lake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.pipelines.ingestion.records import add, add_by_many, offsets, some_records

from ottla.pipelines.ingestion.compaction import compact
from ottla.pipelines.ingestion.delta import DeltaLog
from ottla.pipelines.ingestion.lake import Lake

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")


def _table(lake: Lake, version: int | None = None) -> Any:
    return deltalake.DeltaTable(lake.directory, version=version)


def _offsets(lake: Lake, version: int | None = None) -> list[int]:
    return sorted(_table(lake, version).to_pyarrow_table().column("offset").to_pylist())


def test_a_table_has_the_rows_of_the_lake_in_every_version(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(5):
        add(lake, 10 * number, 10)
    lake.keep_delta()
    assert _offsets(lake) == list(range(50))
    for number in range(5, 12):
        add(lake, 10 * number, 10)
    assert compact(lake) == 11
    add(lake, 120, 5, topic="payments")
    assert _offsets(lake) == [*range(120), *range(120, 125)]
    assert len(_table(lake).file_uris()) == len(lake.state().files) == 2
    assert [_offsets(lake, version) for version in (0, 1, 12, 13)] == [
        [],
        list(range(10)),
        list(range(120)),
        list(range(120)),
    ]


def test_columns_are_those_of_a_record(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.keep_delta()
    add(lake, 0, 3)
    table = _table(lake)
    assert table.metadata().partition_columns == ["topic", "date", "hour"]
    (first, *_) = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["offset"])
    expected = some_records(0, 1).to_pylist()[0]
    moment = expected["timestamp"]
    assert first == {**expected, "date": moment.date(), "hour": moment.hour}


def test_a_lake_without_records_is_an_empty_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    assert lake.keep_delta().version == 0
    assert _offsets(lake) == []
    assert lake.keep_delta().version == 0


def test_a_writer_that_is_killed_between_the_logs_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    lake.keep_delta()
    add(lake, 0, 10)

    class Killed(Exception):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(DeltaLog, "follow", die)
        with pytest.raises(Killed):
            add(lake, 10, 10)
    assert (_offsets(lake), offsets(lake)) == (list(range(10)), list(range(20)))
    add(lake, 20, 10)
    assert _offsets(lake) == list(range(30))


def test_many_writers_at_a_time_write_one_history(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.keep_delta()
    add_by_many(lake, 60)
    assert _table(lake).version() == lake.state().version == 60
    assert _offsets(lake) == list(range(600))


def test_a_checkpoint_says_of_each_file_what_its_version_said(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.keep_delta()
    for number in range(20):
        add(lake, 10 * number, 10)
    log = tmp_path / "_delta_log"
    lines = [line for version in range(1, 21) for line in (log / f"{version:020}.json").read_text().splitlines()]
    added = [json.loads(line)["add"] for line in lines if "add" in json.loads(line)]
    kept = pq.read_table(log / f"{20:020}.checkpoint.parquet").column("add").to_pylist()
    times = {file["path"]: file["modificationTime"] for file in kept if file is not None}
    assert times == {file["path"]: file["modificationTime"] for file in added}


def test_readers_begin_at_the_last_checkpoint(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.keep_delta()
    for number in range(45):
        add(lake, 10 * number, 10)
    log = tmp_path / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 40
    # What the checkpoint has is not asked for any more.
    for version in range(41):
        (log / f"{version:020}.json").unlink()
    assert _offsets(lake) == list(range(450))
