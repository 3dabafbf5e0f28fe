"""Small files into large ones, behind the readers' backs.

The new file holds the rows of the old ones, and one commit puts it in their place: a reader has the ones or the other.
Killed before the commit it leaves a file that nobody sees. Of two at a time the second one's commit is refused.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.pipelines.ingestion.files import read_table, write_files
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.state import AlreadyRemoved, Commit, GivenUp, LakeFile, LakeState

SMALL_BYTES = 32 << 20
TARGET_BYTES = 128 << 20
LEAST_FILES = 8


def compact(
    lake: Lake,
    *,
    small_bytes: int = SMALL_BYTES,
    target_bytes: int = TARGET_BYTES,
    least_files: int = LEAST_FILES,
    most_groups: int | None = None,
) -> int:
    """Put `least_files` or more small files of one topic and hour together; how many files there are less.

    With `most_groups`, no more than that many topics and hours, those with the most files first: who has something else
    to do as well leaves the rest for the next time."""
    saved = 0
    groups = [group for group in _groups(lake.state(), small_bytes, target_bytes) if len(group) >= least_files]
    for group in sorted(groups, key=len, reverse=True)[:most_groups]:
        added = write_files(lake.directory, (read_table(lake.directory, [file]) for file in group))
        try:
            lake.publish(Commit(tuple(added), tuple(file.path for file in group)))
        except (AlreadyRemoved, GivenUp):
            continue
        saved += len(group) - len(added)
    return saved


def _groups(state: LakeState, small_bytes: int, target_bytes: int) -> list[list[LakeFile]]:
    """Small files that belong together, each group of about the wanted size."""
    by_hour: dict[tuple[str, str, str], list[list[LakeFile]]] = defaultdict(lambda: [[]])
    for file in state.files.values():
        if file.size >= small_bytes:
            continue
        groups = by_hour[file.topic, file.date, file.hour]
        if sum(one.size for one in groups[-1]) + file.size > target_bytes:
            groups.append([])
        groups[-1].append(file)
    return [group for groups in by_hour.values() for group in groups]
