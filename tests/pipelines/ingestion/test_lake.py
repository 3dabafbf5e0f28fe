"""The lake's log: commits are whole and in order, offsets are covered once, readers see nothing half done."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from tests.pipelines.ingestion.records import NOON, add, add_by_many, offsets

from ottla.pipelines.ingestion.compaction import compact
from ottla.pipelines.ingestion.coverage import gaps, joined, pieces
from ottla.pipelines.ingestion.files import read_table
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import AlreadyCovered, Commit, TopicReplaced


def test_files_lie_by_topic_date_and_hour(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    add(lake, 0, 10, topic="orders of a=b/c")
    (file,) = lake.state().files.values()
    assert (file.topic, file.date, file.hour, file.rows) == ("orders of a=b/c", "2026-01-01", "12", 10)
    assert (tmp_path / file.path).stat().st_size == file.size
    assert read_table(tmp_path, [file]).column("topic").unique().to_pylist() == ["orders of a=b/c"]


def test_all_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_fsync, real_link = os.fsync, os.link

    def fsync(opened: int) -> None:
        real_fsync(opened)
        order.append(os.readlink(f"/proc/self/fd/{opened}"))

    def link(source: Path, name: Path) -> None:
        real_link(source, name)
        order.append("the commit has its name")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    lake = Lake(tmp_path / "lake")
    add(lake, 0, 10)
    (file,) = lake.state().files.values()
    commit = order.index("the commit has its name")
    path = lake.directory / file.path
    folders = [str(folder) for folder in path.parents if folder.is_relative_to(tmp_path)]
    assert order[0] == str(path)
    assert set(folders) <= set(order[1:commit])
    assert order[commit - 1].endswith(".draft")
    assert order[commit + 1 :] == [str(lake.directory / "_log")]


def test_offsets_are_covered_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    add(lake, 0, 10)
    with pytest.raises(AlreadyCovered, match="offsets 5 to 15 of orders-0"):
        add(lake, 5, 10)
    assert offsets(lake) == list(range(10))
    assert lake.state().cut(("orders", 0)) == 10


def test_many_writers_at_a_time_lose_and_repeat_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    add_by_many(lake, 60)
    assert offsets(lake) == list(range(600))
    assert lake.state().version == 60
    assert lake.state().cut(("orders", 0)) == 600
    # Whoever has only the commits, and none of the kept states, comes to the same.
    for kept in (tmp_path / "_log").glob("*.state.json"):
        kept.unlink()
    assert offsets(lake) == list(range(600))


def test_a_log_of_before_is_read(tmp_path: Path) -> None:
    """Without ids of topics, without the times of files, and without a word about which state is the last one."""
    lake = Lake(tmp_path)
    for number in range(25):
        add(lake, 10 * number, 10)
    compact(lake)
    for path in (tmp_path / "_log").glob("*.json"):
        plain = json.loads(path.read_text())
        files = "files" if "files" in plain else "added"
        old = {name: plain[name] for name in (files, "removed", "covered", "version") if name in plain}
        old[files] = [{name: file[name] for name in file if name != "written_ms"} for file in old[files]]
        if files == "files":
            del old["removed"]
        path.write_text(json.dumps(old))
    (tmp_path / "_log" / "last_state").unlink()
    assert offsets(lake) == list(range(250))
    lake.publish(Commit(covered={("orders", 0): [(250, 260)]}, topics={"orders": "an id"}))
    with pytest.raises(TopicReplaced, match="Take another directory"):
        lake.publish(Commit(covered={("orders", 0): [(260, 270)]}, topics={"orders": "another"}))
    assert lake.state().cut(("orders", 0)) == 260


@pytest.mark.parametrize("text", ["", "7", "no number", "20"])
def test_the_last_state_is_found_again(tmp_path: Path, text: str) -> None:
    lake = Lake(tmp_path)
    for number in range(45):
        add(lake, 10 * number, 10)
    (tmp_path / "_log" / "last_state").write_text(text)
    assert offsets(lake) == list(range(450))


def test_compaction_changes_files_and_nothing_else(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(10):
        add(lake, 10 * number, 10)
    before = lake.state()
    assert compact(lake) == 9
    assert len(lake.state().files) == 1
    assert offsets(lake) == list(range(100))
    assert read_table(tmp_path, before.files.values()).num_rows == 100
    assert lake.vacuum() == []
    long_ago = NOON.timestamp()
    for path in tmp_path.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    assert sorted(lake.vacuum()) == sorted(before.files)
    assert offsets(lake) == list(range(100))


def test_a_compaction_that_is_killed_or_second_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(10):
        add(lake, 10 * number, 10)

    class Killed(Exception):
        pass

    class Mortal(Lake):
        def publish(self, commit: Commit) -> object:  # type: ignore[override]
            raise Killed

    with pytest.raises(Killed):
        compact(Mortal(tmp_path))
    assert offsets(lake) == list(range(100))

    class Slow(Lake):
        def publish(self, commit: Commit) -> object:  # type: ignore[override]
            compact(lake)
            return super().publish(commit)

    assert compact(Slow(tmp_path)) == 0
    assert offsets(lake) == list(range(100))


def test_who_has_little_time_begins_with_the_most_files(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(10):
        for topic in ("orders", "visits", "clicks"):
            if topic == "visits" or number < 9:
                add(lake, 10 * number, 10, topic=topic)
    assert compact(lake, most_groups=1) == 9
    assert [file.rows for file in lake.state().files.values() if file.topic == "visits"] == [100]
    assert [compact(lake, most_groups=1) for _ in range(3)] == [8, 8, 0]
    assert len(lake.state().files) == 3


def test_large_files_are_left_alone(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(20):
        add(lake, 10 * number, 10)
    assert compact(lake, small_bytes=min(file.size for file in lake.state().files.values())) == 0


def test_ranges_add_up() -> None:
    choices = random.Random(3)
    for _ in range(200):
        cuts = sorted(choices.sample(range(1, 100), 6))
        parts = list(zip([0, *cuts], [*cuts, 100], strict=True))
        kept = choices.sample(parts, 4)
        missing = list(gaps(joined(kept), 0, 100))
        assert joined([*kept, *missing]) == [(0, 100)]
        assert joined(piece for gap in missing for piece in pieces(gap, 7)) == joined(missing)
