"""The speed layer beside the lake, and the view that joins both.

The speed layer is what topics have and the lake does not, in memory: whenever somebody asks, the tail of the topics is
read to its end, and what the lake has taken over meanwhile is let go. The view takes one state of the lake. Records
whose offsets that state covers are taken from the lake's files, all others from memory. So each record of the topic is
there once, whether or not the lake grows, or is compacted, at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.client.sync.consumer import Consumer
from ottla.client.sync.reader_admin import ReaderAdmin
from ottla.client.types import TopicPartition
from ottla.pipelines.ingestion.coverage import without_covered
from ottla.pipelines.ingestion.files import read_table, record_schema
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.topics import described, ids_of

if TYPE_CHECKING:
    import pyarrow as pa


class FreshView:
    """Topics as they are now: the lake's records and the newest. It is used by one thread at a time.

    with FreshView("localhost:9092", ["orders"], Lake("lake")) as view:
        table = view.records("orders", since=an_hour_ago)

    Raises TopicReplaced where the lake has records of an older topic of that name.
    """

    def __init__(self, bootstrap: str, topics: Iterable[str], lake: Lake, **settings: Any) -> None:
        self._lake = lake
        self._topics = list(topics)
        self._newest = record_schema().empty_table()
        with ExitStack() as opened:
            self._admin = opened.enter_context(ReaderAdmin(bootstrap, **settings))
            # Where the topic lost records before they were read, what is left of it is read.
            self._consumer: Consumer[bytes, bytes] = opened.enter_context(
                Consumer(
                    bootstrap,
                    isolation_level="read_committed",
                    enable_auto_commit=False,
                    auto_offset_reset="earliest",
                    **settings,
                )
            )
            self._take_in_new_partitions()
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def records(self, topic: str, since: datetime | None = None) -> pa.Table:
        """All that was committed when it was called, in no order; with `since`, by the records' timestamps."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if topic not in self._topics:
            raise ValueError(f"{topic!r} is none of the topics of this view, {self._topics}: name it when you make one")
        # 1. The tail first: what comes between it and the state of the lake is covered, or comes next time.
        self._take_in_new_partitions()
        tail = self._consumer.to_arrow().select(record_schema().names).cast(record_schema())
        # 2. One state of the lake.
        state = self._lake.state()
        # 3. What it covers is in files, what it does not is in memory.
        self._newest = without_covered(pa.concat_tables([self._newest, tail]), state.covered).combine_chunks()
        files = [
            file for file in state.files.values() if file.topic == topic and _may_have(file.date, file.hour, since)
        ]
        older = read_table(self._lake.directory, files)
        both = pa.concat_tables([older, self._newest.filter(pc.equal(self._newest.column("topic"), topic))])
        if since is None:
            return both
        return both.filter(pc.greater_equal(both.column("timestamp"), pa.scalar(since, pa.timestamp("us", "UTC"))))

    def _take_in_new_partitions(self) -> None:
        """Each from where the lake has everything before it; the others go on where they are."""
        state = self._lake.state()
        topics = described(self._admin, self._topics)
        state.check_topics(ids_of(topics))
        partitions = {TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions}
        known = self._consumer.assignment
        new = sorted(partitions - set(known))
        if new:
            places = {one: self._consumer.position(one) for one in known} | {one: state.cut(one) for one in new}
            self._consumer.assign([(*partition, offset) for partition, offset in places.items()])


def _may_have(date: str, hour: str, since: datetime | None) -> bool:
    return since is None or (date, hour) >= tuple(since.astimezone(UTC).strftime("%Y-%m-%d %H").split())
