"""What tasks do for exactly-once: they write their rows in a transaction and leave it open.

A task with few rows (`handOverBytes` at most) needs no transaction: it hands them to the driver with its message,
and they are written in the transaction that decides the batch.

A transactional id belongs to one Python process for as long as it lives, and has its name: nobody else ever opens a
transaction with it, so no late attempt of a task can shut out the one whose rows were decided. The process uses an id
again for a later task once its transaction was ended, by whoever did that, and takes another one otherwise; so there
are as many ids as a process has tasks in one batch, and not one for each task ever.

    ottla-spark-<query>-<run>-<process>-<number>
    |----- key -------|                                  has decisions
    |----- family ----------|                            may be aborted by the driver of that run
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from ottla.client.errors import BrokerError, ConfigError
from ottla.client.sync.admin import Admin
from ottla.client.sync.producer import Producer
from ottla.client.types import StagedTransaction
from ottla.protocol.errors import ErrorCode
from ottla.spark import clients
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.rows import RowSender, RowShape, gathered

if TYPE_CHECKING:
    import pyarrow as pa

_ENDED_STATES = ("CompleteCommit", "CompleteAbort", "Empty")
# Before its epochs are used up an id is retired: the end of the last one would come with another producer id.
_LAST_GOOD_EPOCH = 30_000
_MOST_FAMILIES = 64


@dataclass(frozen=True)
class StagedRows(WriterCommitMessage):
    """What a task hands to the driver: a transaction that is open, or the rows themselves, in Arrow's stream format.
    There is neither where there were no rows, or where they were skipped because the batch had been decided before."""

    key: str
    family: str
    batch_id: int
    transaction: StagedTransaction | None
    row_count: int = 0
    was_decided: bool = False
    rows: bytes | None = None


class Staged(NamedTuple):
    """What became of a task's rows."""

    transaction: StagedTransaction | None = None
    row_count: int = 0
    rows: bytes | None = None


@dataclass
class _Ids:
    """The transactional ids of this process for one family, with the epoch that each was last used with."""

    process: str
    epochs: dict[str, int] = field(default_factory=dict)

    def new(self, family: str) -> str:
        name = f"{family}-{self.process}-{len(self.epochs)}"
        self.epochs[name] = -1
        return name


_ids: dict[str, _Ids] = {}
_owner = 0


def ids_of(family: str) -> _Ids:
    """Made anew in a process that was forked from one that had some."""
    global _owner
    if _owner != os.getpid():
        _ids.clear()
        _owner = os.getpid()
    found = _ids.pop(family, None) or _Ids(secrets.token_hex(6))
    _ids[family] = found
    while len(_ids) > _MOST_FAMILIES:
        del _ids[next(iter(_ids))]
    return found


def take_id(family: str, admin: Admin) -> str:
    """A transactional id of this process that has no open transaction."""
    ids = ids_of(family)
    used = [name for name, epoch in ids.epochs.items() if epoch < _LAST_GOOD_EPOCH]
    if used:
        described = admin.describe_transactions(used).succeeded
        for name in used:
            if name in described and described[name].state in _ENDED_STATES:
                return name
    return ids.new(family)


def stage_rows(options: SinkOptions, shape: RowShape, family: str, batches: "Iterator[pa.RecordBatch]") -> Staged:
    """Write all rows in one transaction, and leave it open; few are handed over instead."""
    tables = gathered(batches)
    first = next(tables, None)
    if first is None:
        return Staged()
    second = next(tables, None)
    if second is None and first.nbytes <= options.hand_over_bytes:
        return Staged(row_count=first.num_rows, rows=packed(first, shape))
    return _in_a_transaction(options, shape, family, chain([first], () if second is None else [second], tables))


def _in_a_transaction(options: SinkOptions, shape: RowShape, family: str, tables: "Iterable[pa.Table]") -> Staged:
    transactional_id = take_id(family, clients.admin(options.connection_settings("task")))
    settings: dict[str, object] = {**options.staging_settings, "transactional.id": transactional_id}
    with Producer[Any, Any](config=settings) as producer:
        _initialize(producer, settings)
        producer.begin_transaction()
        sender = RowSender(shape, producer)
        for table in tables:
            sender.send(table)
        sender.finish()
        staged = producer.stage_transaction()
    if staged is not None:
        ids_of(family).epochs[transactional_id] = staged.epoch
    return Staged(staged, sender.row_count)


def packed(table: "pa.Table", shape: RowShape) -> bytes:
    """The columns that become parts of records, in Arrow's stream format."""
    import pyarrow as pa

    names = shape.columns if shape.topic is not None else [*shape.columns, "topic"]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.select(names).schema) as writer:
        writer.write_table(table.select(names))
    return bytes(sink.getvalue())


def unpacked(rows: bytes) -> "pa.Table":
    import pyarrow as pa

    return pa.ipc.open_stream(rows).read_all()


def _initialize(producer: "Producer[Any, Any]", settings: dict[str, object]) -> None:
    try:
        producer.init_transactions()
    except BrokerError as error:
        if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise ConfigError(
                f"option kafka.transaction.timeout.ms={settings['transaction.timeout.ms']} is more than the brokers "
                "allow: lower it, or raise their transaction.max.timeout.ms; it must be longer than a batch and a "
                "restart of the driver take"
            ) from None
        raise
