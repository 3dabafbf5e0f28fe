"""The reader of a batch query. It is made in a planning process, pickled there, and used by tasks."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ottla.spark.source.cluster import Lookup
from ottla.spark.source.columns import Projection
from ottla.spark.source.filters import Pushed, push
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.planning import OffsetRange, batch_ranges, clamp, split
from ottla.spark.telling import told_plainly


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, projection: Projection) -> None:
        self._options = options
        self._projection = projection
        self._pushed = Pushed()

    @property
    def pushFilters(self) -> Callable[[list[Filter]], Iterable[Filter]]:  # noqa: N802
        return _Pushing(self)

    def take_filters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._pushed, left = push(filters, self._projection)
        return left

    @told_plainly
    def partitions(self) -> list[InputPartition]:
        """One range without records where there are none: Spark would take an empty list for one of its own."""
        with Lookup(self._options) as lookup:
            ranges = self._pushed.narrow(batch_ranges(self._options, lookup))
            time_ms = self._pushed.first_time_ms()
            if time_ms is not None and time_ms >= 0:
                ranges = self._from_time(ranges, time_ms, lookup)
        found = split(ranges, self._options.min_partitions, self._options.max_records_per_partition)
        return list(found) or [OffsetRange("", 0, 0, 0)]

    def _from_time(self, ranges: list[OffsetRange], time_ms: int, lookup: Lookup) -> list[OffsetRange]:
        firsts = lookup.first_from(time_ms, {one.topic_partition: one.end for one in ranges if one.size > 0})
        return clamp(ranges, firsts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from ottla.spark.source.tasks import TaskReader

        assert isinstance(partition, OffsetRange)
        return TaskReader(self._options, self._projection, self._pushed.row_filter).read(partition)


class _Pushing:
    """`pushFilters` of a reader, for sessions in which Spark may push filters and for those in which it may not.

    Where `spark.sql.python.filterPushdown.enabled` is false, which it is by default, Spark refuses to use a reader
    that has its own `pushFilters`: it looks whether the function behind the method is that of the base class. Such a
    session never calls it, so it is shown the base class's.
    """

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader
        self.__func__: Any = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._reader.take_filters(filters)
