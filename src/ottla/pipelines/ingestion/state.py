"""What is in the lake: its files, the offsets that they cover, and what commits change about that.

Nothing here touches a disk. A state is what the commits make of nothing, one after the other; `check` says whether a
commit may come next, and whoever asks in the order of the commits gets the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ottla.pipelines.frame.telling import PipelineError
from ottla.pipelines.ingestion.coverage import Partition, Range, joined, overlaps

# Every file lies in a folder of each, in this order.
FOLDERS = ("topic", "date", "hour")


class AlreadyCovered(ValueError):
    """Some of the offsets are in the lake already."""


class AlreadyRemoved(ValueError):
    """A file that was to be replaced is no longer part of the lake."""


class GivenUp(ValueError):
    """Files waited for so long to be published that they were taken for leavings of a killed writer. Write them
    again."""


class TopicReplaced(PipelineError, ValueError):
    """The topic is another one than that whose records the lake has, of the same name."""


@dataclass(frozen=True, slots=True)
class LakeFile:
    """`path` is relative to the lake. Logs of before had no `written_ms`."""

    path: str
    topic: str
    date: str
    hour: str
    rows: int
    size: int
    written_ms: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """What changes at once. `topics` are the ids of those whose offsets are covered, as far as brokers tell them.

    `discarded` are files that were never published and never will be: a later commit that adds one is refused, so they
    can be deleted. `forgotten` are files that were removed or discarded and are not on the disk any more.
    """

    added: tuple[LakeFile, ...] = ()
    removed: tuple[str, ...] = ()
    covered: Mapping[Partition, Sequence[Range]] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    discarded: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


@dataclass
class LakeState:
    """What is in the lake after commit `version`. `removed` are files that are no part of it and may be on the disk
    still, and the commits that said so."""

    version: int = 0
    files: dict[str, LakeFile] = field(default_factory=dict)
    covered: dict[Partition, list[Range]] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)

    def cut(self, partition: Partition) -> int:
        """All records of the partition before this offset are in the lake."""
        for start, end in self.covered.get(partition, ()):
            if start == 0:
                return end
        return 0

    def check(self, commit: Commit) -> None:
        self.check_topics(commit.topics)
        for (topic, number), ranges in commit.covered.items():
            for start, end in ranges:
                if overlaps(self.covered.get((topic, number), ()), (start, end)):
                    raise AlreadyCovered(f"offsets {start} to {end} of {topic}-{number} are in the lake already")
        for path in commit.removed:
            if path not in self.files:
                raise AlreadyRemoved(f"{path} is no longer in the lake")
        for file in commit.added:
            if file.path in self.removed:
                raise GivenUp(f"{file.path} was given up before it was published: write its records again")

    def check_topics(self, ids: Mapping[str, str]) -> None:
        """Raises TopicReplaced."""
        for topic, topic_id in ids.items():
            known = self.topics.get(topic, topic_id)
            if known != topic_id:
                raise TopicReplaced(
                    f"the lake has records of another topic {topic!r}, with the id {known}: since then the topic was "
                    f"deleted and made again, with the id {topic_id}, and its offsets begin anew. Take another "
                    "directory as the lake of the new topic"
                )

    def apply(self, commit: Commit) -> None:
        self.version += 1
        for path in commit.removed:
            del self.files[path]
        self.files |= {file.path: file for file in commit.added}
        for partition, ranges in commit.covered.items():
            self.covered[partition] = joined([*self.covered.get(partition, ()), *ranges])
        self.topics |= commit.topics
        # What was published before it was discarded stays.
        gone = (*commit.removed, *(path for path in commit.discarded if path not in self.files))
        self.removed |= dict.fromkeys(gone, self.version)
        for path in commit.forgotten:
            self.removed.pop(path, None)


def plain_commit(commit: Commit) -> dict[str, Any]:
    """As JSON has it."""
    return {
        "added": [asdict(file) for file in commit.added],
        "removed": list(commit.removed),
        "covered": _plain_ranges(commit.covered),
        "topics": dict(commit.topics),
        "discarded": list(commit.discarded),
        "forgotten": list(commit.forgotten),
    }


def commit_of(plain: dict[str, Any]) -> Commit:
    """Logs of before have neither ids of topics, nor files that were never published."""
    return Commit(
        tuple(LakeFile(**file) for file in plain["added"]),
        tuple(plain["removed"]),
        _ranges_of(plain["covered"]),
        plain.get("topics", {}),
        tuple(plain.get("discarded", ())),
        tuple(plain.get("forgotten", ())),
    )


def plain_state(state: LakeState) -> dict[str, Any]:
    return {
        "version": state.version,
        "files": [asdict(file) for file in state.files.values()],
        "covered": _plain_ranges(state.covered),
        "topics": state.topics,
        "removed": state.removed,
    }


def state_of(plain: dict[str, Any]) -> LakeState:
    return LakeState(
        plain["version"],
        {file["path"]: LakeFile(**file) for file in plain["files"]},
        _ranges_of(plain["covered"]),
        plain.get("topics", {}),
        plain.get("removed", {}),
    )


def _plain_ranges(covered: Mapping[Partition, Sequence[Range]]) -> list[list[Any]]:
    return [[*partition, *one] for partition, ranges in covered.items() for one in ranges]


def _ranges_of(plain: list[list[Any]]) -> dict[Partition, list[Range]]:
    covered: dict[Partition, list[Range]] = {}
    for topic, number, start, end in plain:
        covered.setdefault((topic, number), []).append((start, end))
    return covered
