"""The columnar part of the consumer's face: records as Arrow tables.

`table_reader` has the machinery; here are the calls that users make.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.arguments import ByPartition, Partition, offset_of, partition_of
from ottla.client.consumer.columns import Decoder, TimestampUnit, decoder_for, require_pyarrow, shape_of
from ottla.client.consumer.core import Core
from ottla.client.consumer.table_reader import TableReader
from ottla.client.errors import ConfigError, Unfinished
from ottla.client.types import TopicPartition

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

DEFAULT_TABLE_BYTES = 16 * 1024 * 1024


class Tables(ABC):
    """`tables` without an end; `to_arrow`, `to_polars` and `to_pandas` for what is there now."""

    @property
    @abstractmethod
    def _core(self) -> Core: ...

    @abstractmethod
    async def end_offsets(
        self, partitions: Iterable[Partition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]: ...

    @abstractmethod
    async def position(self, partition: Partition, *, timeout: float | None = None) -> int: ...

    @abstractmethod
    def _need_something(self) -> None: ...

    @abstractmethod
    def _api_seconds(self, timeout: float | None) -> float: ...

    async def tables(
        self,
        *,
        max_rows: int | None = None,
        max_bytes: int = DEFAULT_TABLE_BYTES,
        until: ByPartition[int] | None = None,
        timeout: float | None = None,
        headers: bool = True,
        columns: Iterable[str] | None = None,
        timestamp_unit: TimestampUnit = "ms",
        value_format: str | None = None,
        schema: Any = None,
        decoder: Decoder | None = None,
    ) -> AsyncGenerator["pa.Table", None]:
        """pyarrow tables, each as soon as there are rows for it, without an end; with `timeout`, until none came for
        so many seconds. With `until` they end at these offsets (which are not included), and nothing behind them is
        fetched meanwhile; when no table came in time before they were reached, that is Unfinished.

            async for table in consumer.tables(value_format="json"):
                print(table.group_by("user_id").aggregate([("amount", "sum")]))

        The columns are key, value, topic, partition, offset, timestamp, timestampType and headers, or those of them
        that `columns` names. A table has at most
        `max_rows` rows and, but for a single chunk that is larger, `max_bytes`. `value_format="json"` makes columns of
        the values (of `schema`, if given); `decoder` is a function from table to table that keeps the rows.

        To ask for the next table is to be done with the one before.
        """
        require_pyarrow()
        if (max_rows is not None and max_rows < 1) or max_bytes < 1:
            raise ConfigError("max_rows and max_bytes are at least 1")
        if columns is not None and (value_format is not None or max_rows is not None):
            raise ConfigError("columns goes with neither value_format nor max_rows: these need columns of their own")
        shape = shape_of(columns, headers, timestamp_unit)
        self._need_something()
        ends = None if until is None else self._ends_of(until)
        reader = TableReader(self._core, decoder_for(value_format, schema, decoder), max_rows, max_bytes, shape, ends)
        try:
            while not reader.is_complete() and (table := await reader.next_table(timeout)) is not None:
                yield table
            if ends is not None and not reader.is_complete():
                raise Unfinished(f"no table came for {timeout} s before all partitions were at their ends: read on")
        finally:
            reader.close()

    async def to_arrow(
        self,
        *,
        until: ByPartition[int] | None = None,
        timeout: float | None = None,
        headers: bool = True,
        value_format: str | None = None,
        schema: Any = None,
        decoder: Decoder | None = None,
    ) -> "pa.Table":
        """All records from where the consumer stands to the ends of its partitions now, or to the offsets of `until`
        (which are not included). With `timeout`, what came until none came for so many seconds. A member of a group
        waits for its partitions first, for that time or `default.api.timeout.ms`.

        It is one table in memory; `tables` has no such bound.
        """
        require_pyarrow()
        import pyarrow as pa

        self._need_something()
        core = self._core
        await core.first_assignment(core.clock.monotonic() + self._api_seconds(timeout))
        asked = core.assignment.partitions()
        if until is None:
            ends = await self.end_offsets(asked)
        else:
            ends = self._ends_of(until)
        for partition in ends:
            await self.position(partition)
        shape = shape_of(None, headers, "ms")
        reader = TableReader(core, decoder_for(value_format, schema, decoder), None, DEFAULT_TABLE_BYTES, shape, ends)
        tables = []
        try:
            while not reader.is_complete():
                table = await reader.next_table(timeout)
                if table is None:
                    break
                tables.append(table)
        finally:
            reader.close()
        if not tables:
            return reader.empty_table()
        return pa.concat_tables(tables, promote_options="permissive")

    def _ends_of(self, until: ByPartition[int]) -> dict[TopicPartition, int]:
        """NotAssigned for a partition that is not read."""
        ends = {partition_of(partition): offset_of(offset) for partition, offset in until.items()}
        for partition in ends:
            self._core.assignment.state(partition)
        return ends

    async def to_polars(self, **options: Any) -> "polars.DataFrame":
        """`to_arrow` as a polars DataFrame."""
        try:
            import polars
        except ImportError:
            raise ConfigError("to_polars needs polars: pip install polars") from None
        frame = polars.from_arrow(await self.to_arrow(**options))
        if not isinstance(frame, polars.DataFrame):
            raise TypeError(f"a DataFrame expected, {type(frame).__name__} came")
        return frame

    async def to_pandas(self, **options: Any) -> "pandas.DataFrame":
        """`to_arrow` as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise ConfigError("to_pandas needs pandas: pip install pandas") from None
        frame: pandas.DataFrame = (await self.to_arrow(**options)).to_pandas()
        return frame
