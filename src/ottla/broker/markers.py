"""Ending a transaction in the partitions that it wrote to, as their leader.

A marker is a batch of its own. It is for WriteTxnMarkers, and for a coordinator on this broker, which needs no request
for it. A topic whose records feed a coordinator (`__consumer_offsets`) has its markers written by that one, since they
decide what counts of its records: it is among the broker's `transaction_enders`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ottla.ledger.machine import Writer
from ottla.log.append_info import AppendInfo
from ottla.log.producer_state import NO_EPOCH
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import ControlType, EndTransactionMarker, build_end_transaction
from ottla.runtime.promise import Promise
from ottla.transactions import EndedTransaction, MarkerErrors, TopicPartition

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.replication.partition import Partition


@dataclass(frozen=True, slots=True)
class Ending:
    """How a transaction ended, and who says so. From `transaction_version` 2 on each marker has an epoch of its own."""

    writer: Writer
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


# Given the index of a partition; the promise is kept once the marker is committed.
EndTransaction = Callable[[int, Ending], Promise[None]]

# What a coordinator that is asked for a marker does not expect: it tries again after this.
_NOT_READY = frozenset(
    (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
)


def write_marker(broker: "Broker", topic: str, index: int, ending: Ending) -> Promise[None]:
    """Write a marker into one partition; kept once all in-sync replicas have it, or with the error why they do not.

    One that comes too late is INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED, and changes nothing. The same
    one once more is written again: whoever does not know whether it was written may repeat it.
    """
    promise: Promise[None] = Promise()
    try:
        partition = broker.replicas.partition(topic, index)
        end_elsewhere = broker.transaction_enders.get(topic)
        if end_elsewhere is None:
            _append(partition, ending, broker.clock.now_ms(), promise)
        else:
            end_elsewhere(index, ending).add_done_callback(lambda ended: _ended(ended, promise))
    except KafkaError as error:
        promise.reject(_told(error))
    return promise


def write_markers(
    broker: "Broker", ended: EndedTransaction, partitions: Sequence[TopicPartition]
) -> Promise[MarkerErrors]:
    """What the coordinator of transactions on this broker wants written; the errors of those that could not be."""
    writer = Writer(ended.producer_id, ended.producer_epoch)
    ending = Ending(writer, ended.is_commit, ended.coordinator_epoch, ended.client_version)
    promise: Promise[MarkerErrors] = Promise()
    errors: dict[TopicPartition, ErrorCode] = {}
    waiting = set(partitions)

    def written(partition: TopicPartition, marker: Promise[None]) -> None:
        error = marker.exception()
        if error is not None:
            errors[partition] = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        waiting.discard(partition)
        if not waiting:
            promise.resolve(errors)

    for partition in partitions:
        write_marker(broker, *partition, ending).add_done_callback(partial(written, partition))
    return promise


def _append(partition: "Partition", ending: Ending, now_ms: int, promise: Promise[None]) -> None:
    if ending.writer.producer_id < 0 or ending.writer.producer_epoch == NO_EPOCH:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker needs a producer and its epoch")
    batch = build_end_transaction(
        EndTransactionMarker(ControlType.COMMIT if ending.is_commit else ControlType.ABORT, ending.coordinator_epoch),
        producer_id=ending.writer.producer_id,
        producer_epoch=ending.writer.producer_epoch,
        timestamp=now_ms,
    )

    def appended(info: AppendInfo) -> None:
        waiting = partition.committed(info.last_offset + 1)
        if waiting is None:
            promise.resolve(None)
        else:
            waiting.add_done_callback(committed)

    def committed(future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is None:
            promise.resolve(None)
        else:
            promise.reject(error)

    def queued(future: asyncio.Future[AppendInfo]) -> None:
        error = future.exception()
        if error is None:
            appended(future.result())
        else:
            promise.reject(error)

    info = partition.append_own(memoryview(bytearray(batch)), ending.transaction_version)
    if isinstance(info, AppendInfo):
        appended(info)
    else:
        info.add_done_callback(queued)


def _ended(ended: Promise[None], promise: Promise[None]) -> None:
    error = ended.exception()
    if error is None:
        promise.resolve(None)
    else:
        promise.reject(_told(error) if isinstance(error, KafkaError) else error)


def _told(error: KafkaError) -> KafkaError:
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) if error.code in _NOT_READY else error
