"""Delivery exactly once: the rows of a batch appear as a whole, once, whatever dies and whatever is repeated.

## The difficulty

Spark repeats a micro-batch that it does not know to be done: after a crash of the driver the same rows come again under
the same batch id, possibly cut into another number of tasks. The tasks of a batch write from many processes, so one
transaction cannot hold them all; and a number of transactions cannot be committed at one moment.

## The protocol

Tasks *stage*: each writes its rows in a transaction of its own and leaves it open. The driver *decides*: one record in
the log of decisions (`decisions`) names the batch and all its staged transactions. This is the moment at which the
batch counts. A task with few rows hands them to the driver instead, which writes them in the transaction of that very
record: they are there if and only if the decision is. Then the driver *ends* each staged transaction, which any process
may do that knows transactional id, producer id and epoch, and as often as it likes: the second time nothing happens.
When all are ended, another record says so.

A repeated batch is looked up in the log. One that was decided is *rolled forward*: its tasks write nothing, and the
driver ends what the decision names. One that was not is written anew. Since the decision is about the batch as a whole,
nobody has to know how it was cut into tasks.

## What must stay true

1. Nothing is committed that is not named by a decision or in its transaction, and everything that is named by one is
   committed, or the query fails by name. There is no third way: no row is lost in silence, none appears twice.
2. There is one decision for a batch. It is written by the query's decider, whose transactional id the newest driver has
   taken over; the one before cannot write any more, and what it had under way is settled before the log is read.
3. Nobody but the driver ends what is decided. A transactional id belongs to one process (`staging`), which begins
   another transaction with it only when the last one has ended. So neither a late attempt of a task nor the repeated
   batch can shut out a transaction that was decided, or is about to be.
4. What is aborted is not named by a decision, and will not be. The driver that decides a batch lists what is open
   *before*, and aborts what it does not need *after* its decision stands: all of that is of this batch or of an earlier
   one, and both are decided now. A driver that finds its batch decided aborts only what tasks of its own run staged,
   and so does `abort`, which leaves all alone as soon as there is a record for the batch, even one that does not stand
   yet. Producer id and epoch are named, so a transaction that was begun later is never meant.
5. Every batch is decided, also one without rows: a driver at batch 7 knows that nobody is at batch 9.

## What a crash leaves, and who repairs it

| the driver dies                | left behind                       | the repeated batch                           |
|--------------------------------|-----------------------------------|----------------------------------------------|
| while tasks write, or before 3 | open transactions, no decision    | writes anew; its step 6 aborts the old ones  |
| while the decision is written  | a record that stands or does not  | the decider's InitProducerId settles which   |
| after the decision, before 4   | a decision, all transactions open | tasks skip their rows; all are ended         |
| between two ends               | a decision, some open             | tasks skip; the rest is ended, others repeat |
| after the last end, before 5   | a decision, none open             | tasks skip; all ends are repeats             |
| after 5, before Spark knows    | a decision that says "ended"      | tasks skip; there is nothing to end          |

| something else happens         | then                                                                         |
|--------------------------------|------------------------------------------------------------------------------|
| a task fails                   | it aborts its own transaction; another attempt stages its rows               |
| an executor dies               | its transactions stay open until step 6 of the next decision, or `abort`     |
| two attempts of a task finish  | Spark takes the message of one; the other's transaction is aborted in step 6 |
| two drivers run the query      | the first to decide wins; the other finds its decision, or is shut out       |
| a broker dies                  | requests are repeated; decisions and open transactions are in its logs       |
| a staged transaction times out | before the decision: the batch is written anew; after it: `DecidedRowsLost`  |

The numbers are those of `Settlement.commit`. A batch write has no batch
id and is not repeated by Spark; it gets a name of its own and goes the same way, unless it is given a name and a number
(`txnAppId`, `txnVersion`), under which it may be repeated as a micro-batch is.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.errors import OttlaError
from ottla.client.types import StagedTransaction
from ottla.spark.sink.decisions import Decider, Decision, DecisionLog, DecisionState, ensure_topic
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.rows import HandedOver, RowShape
from ottla.spark.sink.settlement import Settlement, superseded
from ottla.spark.sink.staging import StagedRows, stage_rows, unpacked
from ottla.spark.telling import told_plainly

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
# A streaming query's jobs are a group that has the id of its run.
_RUN = "spark.jobGroup.id"
RUN_LETTERS = 12
_ONLY_BATCH = 0

Messages = Sequence[WriterCommitMessage | None]


class ExactlyOnceStreamWriter(DataSourceStreamArrowWriter):
    """The writer of one micro-batch. Spark makes one in the driver for its tasks, and another for its commit."""

    def __init__(self, options: SinkOptions, shape: RowShape) -> None:
        self._options = options
        self._shape = shape
        ensure_topic(options)

    @told_plainly
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> StagedRows:
        query_id, run, batch_id = _where_am_i()
        key = f"{self._options.transactional_id_prefix}-{query_id}"
        return _stage_numbered(self._options, self._shape, key, f"{key}-{run}", batch_id, iterator)

    @told_plainly
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803  # Spark's name
        _commit_numbered(self.settlement, self._shape, messages)

    @told_plainly
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803  # Spark's name
        rows = staged_rows(messages)
        if rows:
            is_complete = len(rows) == len(messages)
            self.settlement(rows[0].key).abort(batchId, family=rows[0].family, is_complete=is_complete)

    def settlement(self, key: str) -> Settlement:
        return Settlement(self._options, key)


class ExactlyOnceWriter(DataSourceArrowWriter):
    """The writer of a batch query: the same one for its tasks and, after them, for its commit."""

    def __init__(self, options: SinkOptions, shape: RowShape) -> None:
        self._options = options
        self._shape = shape
        self._key = f"{options.transactional_id_prefix}-write-{uuid.uuid4()}"
        ensure_topic(options)

    @told_plainly
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> StagedRows:
        staged = stage_rows(self._options, self._shape, self._key, iterator)
        return StagedRows(
            self._key, self._key, _ONLY_BATCH, staged.transaction, row_count=staged.row_count, rows=staged.rows
        )

    @told_plainly
    def commit(self, messages: Messages) -> None:
        staged = staged_rows(messages)
        self.settlement().commit(_ONLY_BATCH, transactions(staged), handed_over(self._shape, staged), family=self._key)

    @told_plainly
    def abort(self, messages: Messages) -> None:
        is_complete = all(one is not None for one in messages)
        self.settlement().abort(_ONLY_BATCH, family=self._key, is_complete=is_complete)

    def settlement(self) -> Settlement:
        return WriteSettlement(self._options, self._key)


class NumberedWriter(DataSourceArrowWriter):
    """The writer of a batch query that has a name and a number (`txnAppId`, `txnVersion`): written again under the same
    ones, it writes nothing. With the number of the micro-batch this makes `foreachBatch` exactly once."""

    def __init__(self, options: SinkOptions, shape: RowShape, name: str, number: int) -> None:
        self._options = options
        self._shape = shape
        self._key = key_of(options, name)
        self._number = number
        self._run = uuid.uuid4().hex[:RUN_LETTERS]
        ensure_topic(options)

    @told_plainly
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> StagedRows:
        # In `foreachBatch` the run of the query, so that its transactional ids are used again from batch to batch.
        family = f"{self._key}-{_run_of(TaskContext.get()) or self._run}"
        return _stage_numbered(self._options, self._shape, self._key, family, self._number, iterator)

    @told_plainly
    def commit(self, messages: Messages) -> None:
        _commit_numbered(self.settlement, self._shape, messages)

    @told_plainly
    def abort(self, messages: Messages) -> None:
        rows = staged_rows(messages)
        if rows:
            is_complete = len(rows) == len(messages)
            self.settlement(rows[0].key).abort(self._number, family=rows[0].family, is_complete=is_complete)

    def settlement(self, key: str) -> Settlement:
        return Settlement(self._options, key)


def key_of(options: SinkOptions, name: str) -> str:
    """Of writes with this name. What belongs to a key is found by how it begins, so none begins as another does: a
    point ends the name, and those inside of it are doubled."""
    return f"{options.transactional_id_prefix}-{name.replace('.', '..')}."


class WriteSettlement(Settlement):
    """Of a batch write, whose name nobody will ask for again."""

    @contextmanager
    def decider(self) -> Iterator[Decider]:
        with Decider(self._options, self._log) as decider:
            yield decider

    def decide(self, decider: Decider, decision: Decision, rows: HandedOver | None) -> None:
        if decision.state is DecisionState.ENDED:
            decider.erase(rows)
        else:
            super().decide(decider, decision, rows)

    def conclude(self, decider: Decider, decision: Decision) -> None:
        decider.erase()


def _stage_numbered(
    options: SinkOptions,
    shape: RowShape,
    key: str,
    family: str,
    number: int,
    iterator: "Iterator[pa.RecordBatch]",
) -> StagedRows:
    """The rows of a task of this batch, staged; or a note that the batch was decided before."""
    last = DecisionLog(options, key).last()
    if last is not None and last.batch_id > number:
        raise superseded(key, number, last)
    if last is not None and last.batch_id == number:
        return StagedRows(key, family, number, None, was_decided=True)
    staged = stage_rows(options, shape, family, iterator)
    return StagedRows(key, family, number, staged.transaction, row_count=staged.row_count, rows=staged.rows)


def _commit_numbered(settlement: Callable[[str], Settlement], shape: RowShape, messages: Messages) -> None:
    rows = staged_rows(messages)
    if rows:
        first = rows[0]
        settlement(first.key).commit(
            first.batch_id,
            transactions(rows),
            handed_over(shape, rows),
            family=first.family,
            is_repeated=any(one.was_decided for one in rows),
        )


def _where_am_i() -> tuple[str, str, int]:
    """The query, the run of it and the micro-batch that this task is part of."""
    context = TaskContext.get()
    query_id = context.getLocalProperty(_QUERY) if context is not None else None
    batch_id = context.getLocalProperty(_BATCH) if context is not None else None
    if context is None or query_id is None or batch_id is None:
        raise OttlaError(
            "Spark does not say which micro-batch this task is part of: deliveryGuarantee=exactly-once works with "
            "micro-batches only, not with continuous or real-time triggers"
        )
    return query_id, _run_of(context) or "run", int(batch_id)


def _run_of(context: TaskContext | None) -> str:
    """Empty where Spark does not say."""
    run_id = context.getLocalProperty(_RUN) if context is not None else None
    return (run_id or "").replace("-", "")[:RUN_LETTERS]


def staged_rows(messages: Messages) -> list[StagedRows]:
    return [one for one in messages if isinstance(one, StagedRows)]


def transactions(rows: Sequence[StagedRows]) -> list[StagedTransaction]:
    return [one.transaction for one in rows if one.transaction is not None]


def handed_over(shape: RowShape, rows: Sequence[StagedRows]) -> HandedOver | None:
    tables = [unpacked(one.rows) for one in rows if one.rows is not None]
    return HandedOver(shape, tables) if tables else None
