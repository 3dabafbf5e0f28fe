"""Micro-batches from `foreachBatch` into topics, exactly once, in one job of Spark's.

`batch.write.format("ottla")` asks three Python processes to plan a write before its job starts, and another one to
commit it. In `foreachBatch` the driver's own Python is at hand: it looks whether the batch was decided, has the tasks
stage or hand over their rows, and decides, with clients that it keeps as long as the query runs. The protocol is that
of `exactly_once`; the name of the writes is the query's, their number the batch's.

Rows may have a part that is not for topics: what each task does with it is said by an `Aside`.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ottla.client.sync.admin import Admin
from ottla.spark.sink.decisions import Decider, Decision, DecisionReader, ensure_topic
from ottla.spark.sink.exactly_once import RUN_LETTERS, handed_over, key_of, transactions
from ottla.spark.sink.options import SinkOptions, read_options
from ottla.spark.sink.rows import RowShape, row_shape
from ottla.spark.sink.settlement import Settlement, superseded
from ottla.spark.sink.staging import StagedRows, stage_rows
from ottla.spark.sink.topics import check_topic
from ottla.spark.source.ending import at_end

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_QUERY = "sql.streaming.queryId"
_RUN = "spark.jobGroup.id"
_MESSAGE = "message BINARY"


class Aside(Protocol):
    """What a task does with rows that are not for topics."""

    def take(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Take them out of a batch; the rest is for topics."""
        ...

    def finish(self) -> Any:
        """What the driver is told of them."""
        ...


class MicroBatchWriter:
    """Of one run of a query: `write` is what its `foreachBatch` calls. When the run has ended, it is closed.

    `aside` makes an `Aside` in each task, and `settle` is given, before the batch is decided, what they have told; both
    are called again for a batch that is repeated, and find by themselves what was done before. `settle` runs in the
    driver, `aside` is pickled.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        *,
        aside: "Callable[[int], Aside] | None" = None,
        settle: Callable[[int, Sequence[Any]], None] | None = None,
    ) -> None:
        self._options = read_options({**options, "deliveryGuarantee": "exactly-once"})
        self._aside = aside
        self._settle = settle
        self._settlement: _LastingSettlement | None = None
        self._shape: RowShape | None = None

    def write(self, batch: "DataFrame", number: int) -> None:
        context = batch.sparkSession.sparkContext
        run_id = context.getLocalProperty(_RUN) or ""
        name = context.getLocalProperty(_QUERY) or ""
        settlement = self._settlement or self._begun(key_of(self._options, name), run_id)
        shape = self._shape or row_shape(batch.schema, self._options.topic)
        self._settlement, self._shape = settlement, shape
        family = f"{settlement.key}-{run_id.replace('-', '')[:RUN_LETTERS] or 'run'}"
        is_decided = settlement.has_decided(number)
        task = _task(self._options, shape, settlement.key, family, number, is_decided, self._aside)
        told = [pickle.loads(row[0]) for row in batch.mapInArrow(task, _MESSAGE).collect()]
        if self._settle is not None:
            self._settle(number, [aside for _, aside in told])
        rows = [staged for staged, _ in told]
        settlement.commit(number, transactions(rows), handed_over(shape, rows), family=family, is_repeated=is_decided)

    def _begun(self, key: str, run_id: str) -> "_LastingSettlement":
        check_topic(self._options)
        ensure_topic(self._options)
        at_end(run_id, self.close)
        return _LastingSettlement(self._options, key)

    def close(self) -> None:
        if self._settlement is not None:
            self._settlement.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _task(
    options: SinkOptions,
    shape: RowShape,
    key: str,
    family: str,
    number: int,
    is_decided: bool,
    make_aside: "Callable[[int], Aside] | None",
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """For `mapInArrow`. Where the batch was decided before, its rows are counted, and go nowhere: what comes before
    this step keeps state, which it writes only when all its rows were taken."""

    def work(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        aside = None if make_aside is None else make_aside(number)
        for_topics = batches if aside is None else map(aside.take, batches)
        if is_decided:
            count = sum(batch.num_rows for batch in for_topics)
            done = StagedRows(key, family, number, None, row_count=count, was_decided=True)
        else:
            staged = stage_rows(options, shape, family, for_topics)
            done = StagedRows(key, family, number, staged.transaction, row_count=staged.row_count, rows=staged.rows)
        message = pickle.dumps((done, None if aside is None else aside.finish()))
        yield pa.RecordBatch.from_arrays([pa.array([message], pa.binary())], names=["message"])

    return work


class _LastingSettlement(Settlement):
    """With a decider and an admin client of its own, which it keeps: several queries settle side by side in a driver,
    each in a thread of its own."""

    def __init__(self, options: SinkOptions, key: str) -> None:
        super().__init__(options, key)
        self.key = key
        self._own_admin: Admin | None = None
        self._own_decider: Decider | None = None

    @property
    def _admin(self) -> Admin:
        if self._own_admin is None:
            self._own_admin = Admin(config=self._options.connection_settings("driver"))
        return self._own_admin

    def has_decided(self, number: int) -> bool:
        """Whether this batch was decided before. BatchSuperseded where a later one was."""
        decider = self._own_decider
        last = self.last_decision() if decider is None or decider.last is None else decider.last
        if last is not None and last.batch_id > number:
            raise superseded(self.key, number, last)
        return last is not None and last.batch_id == number

    @contextmanager
    def decider(self) -> Iterator[Decider]:
        decider, self._own_decider = self._own_decider or Decider(self._options, self._log), None
        with ExitStack() as stack:
            stack.callback(decider.close)
            yield decider
            stack.pop_all()
        self._own_decider = decider

    def last_decision(self) -> Decision | None:
        """Read from the start of its partition: once, since what is decided later this driver has decided itself."""
        reader = DecisionReader(self._options, self._log.partition, "read_committed", self._admin)
        try:
            reader.read_to_end()
            found = reader.last.get(self.key)
        finally:
            reader.close()
        return None if found is None else Decision.from_bytes(found, self._options.decisions_topic)

    def close(self) -> None:
        decider, self._own_decider = self._own_decider, None
        admin, self._own_admin = self._own_admin, None
        if decider is not None:
            decider.close()
        if admin is not None:
            admin.close()
