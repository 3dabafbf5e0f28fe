"""What pipelines answer, from their result topics and from the lake."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.cli.output import size_text
from ottla.cli.pipeline_sentences import cell, sentence
from ottla.pipelines.frame.results import Row, in_order

if TYPE_CHECKING:
    from ottla.pipelines.frame.pipeline import Pipeline, View
    from ottla.pipelines.frame.place import Place
    from ottla.pipelines.frame.results import Results, Table
    from ottla.pipelines.ingestion.state import LakeState

INGESTION: Final = "ingestion"
_LAKE_COLUMNS: Final = ("topic", "rows", "files", "size", "newest_hour")
_LAKE_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Answer:
    """A table of answers, those that matter most first, and the same as sentences."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    sentences: tuple[str, ...]


def answers_of(pipeline: "Pipeline", results: "Results", lake: "LakeAnswer | None") -> list[Answer]:
    found = [_answer_of(view, results.tables[view.topic]) for view in pipeline.views]
    if pipeline.name == INGESTION and lake is not None:
        found.append(lake.now())
    return found


def _answer_of(view: "View", table: "Table") -> Answer:
    first = [table[key] for key in in_order(table, view)[: view.rows]]
    rows = tuple({name: cell(name, row.get(name)) for name in view.columns} for row in first)
    return Answer(view.title, view.columns, rows, tuple(sentence(view, row) for row in first))


class LakeAnswer:
    """What the lake of `ingestion` holds. Its log is read when it has changed, and every other second at most."""

    def __init__(self, place: "Place", now: Callable[[], float] = time.monotonic) -> None:
        from ottla.pipelines.ingestion.job import lake_directory
        from ottla.pipelines.ingestion.lake import Lake

        self._lake = Lake(lake_directory(place))
        self._log = self._lake.directory / "_log"
        self._now = now
        self._next_look = -1.0
        self._changed_ns = -1
        self._answer = lake_answer(None)

    def now(self) -> Answer:
        now = self._now()
        if now >= self._next_look:
            self._next_look = now + _LAKE_SECONDS
            changed_ns = self._log.stat().st_mtime_ns if self._log.exists() else -1
            if changed_ns != self._changed_ns:
                self._changed_ns = changed_ns
                self._answer = lake_answer(self._lake.state())
        return self._answer


def lake_answer(state: "LakeState | None") -> Answer:
    """All in one sentence, then one for each topic."""
    title = "What the lake holds"
    if state is None or not state.files:
        return Answer(title, _LAKE_COLUMNS, (), ())
    by_topic = defaultdict(list)
    for file in state.files.values():
        by_topic[file.topic].append(file)
    rows: list[dict[str, int | str]] = [
        {
            "topic": topic,
            "rows": sum(file.rows for file in files),
            "files": len(files),
            "size": size_text(sum(file.size for file in files)),
            "newest_hour": max(f"{file.date} {file.hour}:00" for file in files),
        }
        for topic, files in by_topic.items()
    ]
    rows.sort(key=lambda row: (-int(row["rows"]), row["topic"]))
    total = sum(file.rows for file in state.files.values())
    size = size_text(sum(file.size for file in state.files.values()))
    whole = (
        f"the lake has {total:,} records of {_count(len(rows), 'topic')} in {_count(len(state.files), 'file')} ({size})"
    )
    each = (f"{row['topic']}: {row['rows']:,} records" for row in rows)
    return Answer(f"{title}: {total:,} records", _LAKE_COLUMNS, tuple(rows), (whole, *each))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
