"""Delivery at least once, as Spark's connector has it: a task is done when all of its rows are acknowledged.

A task that fails is run again and writes its rows again, and so does a micro-batch that is repeated; within one attempt
the producer's idempotence keeps retries from doing so. There is nothing to commit or to abort.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ottla.spark import clients
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.rows import RowSender, RowShape
from ottla.spark.telling import told_plainly

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """A task has written its rows."""

    row_count: int


@told_plainly
def write_rows(options: SinkOptions, shape: RowShape, batches: "Iterator[pa.RecordBatch]") -> Written:
    settings = options.producer_settings
    sender = RowSender(shape, clients.producer(settings))
    try:
        sender.send_all(batches)
        sender.finish()
    except BaseException:
        # What is left in its buffer belongs to a task that has failed, perhaps because no broker takes it.
        clients.forget(clients.name_of("producer", settings), timeout=0)
        raise
    return Written(sender.row_count)


class AtLeastOnceWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, shape: RowShape) -> None:
        self._options = options
        self._shape = shape

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return write_rows(self._options, self._shape, iterator)


class AtLeastOnceStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, shape: RowShape) -> None:
        self._options = options
        self._shape = shape

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return write_rows(self._options, self._shape, iterator)
