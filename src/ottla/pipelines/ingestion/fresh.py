"""The speed layer beside the lake, and the view that joins both.

The speed layer is what topics have and the lake does not, in memory: whenever somebody asks, the tail of the topics is
read to its end, and what the lake has taken over meanwhile is let go. The view takes one state of the lake. In each
partition that state has a cut: records before it are taken from the lake's files, records from it on from memory. So
each record of the topic is there once, whether or not the lake grows, or is compacted, at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.client.sync.consumer import Consumer
from ottla.client.types import TopicPartition
from ottla.pipelines.ingestion.files import read_table, record_schema
from ottla.pipelines.ingestion.lake import Lake, LakeState

if TYPE_CHECKING:
    import pyarrow as pa


class FreshView:
    """Topics as they are now: the lake's records and the newest. It is used by one thread at a time.

    with FreshView("localhost:9092", ["orders"], Lake("lake")) as view:
        table = view.records("orders", since=an_hour_ago)
    """

    def __init__(self, bootstrap: str, topics: Iterable[str], lake: Lake, **settings: Any) -> None:
        self._lake = lake
        self._consumer: Consumer[bytes, bytes] = Consumer(
            bootstrap, isolation_level="read_committed", enable_auto_commit=False, **settings
        )
        self._partitions = [
            TopicPartition(topic, one.partition) for topic in topics for one in self._consumer.partitions_for(topic)
        ]
        self._beginnings = self._consumer.beginning_offsets(self._partitions)
        cuts = self._cuts(lake.state())
        self._consumer.assign([(*partition, cuts[partition]) for partition in self._partitions])
        self._newest = record_schema().empty_table()

    def close(self) -> None:
        self._consumer.close()

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

        # 1. The tail first: what comes between it and the state of the lake is before the cut, or comes next time.
        tail = self._consumer.to_arrow().select(record_schema().names).cast(record_schema())
        # 2. One state of the lake.
        state = self._lake.state()
        cuts = self._cuts(state)
        # 3. From the cut on there is memory, before it there are files.
        self._newest = _side_of_cut(pa.concat_tables([self._newest, tail]), cuts, is_before=False).combine_chunks()
        files = [
            file for file in state.files.values() if file.topic == topic and _may_have(file.date, file.hour, since)
        ]
        older = _side_of_cut(read_table(self._lake.directory, files), cuts, is_before=True)
        both = pa.concat_tables([older, self._newest.filter(pc.equal(self._newest.column("topic"), topic))])
        if since is None:
            return both
        return both.filter(pc.greater_equal(both.column("timestamp"), pa.scalar(since, pa.timestamp("us", "UTC"))))

    def _cuts(self, state: LakeState) -> dict[TopicPartition, int]:
        """Where retention was faster than the lake, the partition begins later than the cut: there is no more."""
        return {one: max(state.cut((one.topic, one.partition)), self._beginnings[one]) for one in self._partitions}


def _side_of_cut(table: pa.Table, cuts: dict[TopicPartition, int], *, is_before: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {name: table.column(name) for name in ("topic", "partition", "offset")}
    chosen = pa.chunked_array([pa.repeat(pa.scalar(False), table.num_rows)])
    for (topic, number), cut in cuts.items():
        is_here = pc.and_(pc.equal(columns["topic"], topic), pc.equal(columns["partition"], number))
        side = pc.less(columns["offset"], cut) if is_before else pc.greater_equal(columns["offset"], cut)
        chosen = pc.or_(chosen, pc.and_(is_here, side))
    return table.filter(chosen)


def _may_have(date: str, hour: str, since: datetime | None) -> bool:
    return since is None or (date, hour) >= tuple(since.astimezone(UTC).strftime("%Y-%m-%d %H").split())
