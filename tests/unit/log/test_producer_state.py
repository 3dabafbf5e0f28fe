"""Idempotent producers: what is a repetition, what is a gap, and what is kept of them."""

import pytest

from ottla.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.log.producer_state import MAX_SEQUENCE, ProducerEntry, ProducerState, StoredBatch
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader

PRODUCER = 7


def header(
    base_sequence: int, count: int = 1, *, epoch: int = 0, timestamp: int = 1000, transactional: bool = False
) -> BatchHeader:
    return BatchHeader(
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=base_sequence,
        last_offset_delta=count - 1,
        record_count=count,
        max_timestamp=timestamp,
        attributes=0x10 if transactional else 0,
    )


class Producer:
    """Stores batches one after the other."""

    def __init__(self) -> None:
        self.state = ProducerState()

    def store(self, batch: BatchHeader) -> None:
        assert self.state.check(batch) is None
        first_offset = self.state.end_offset
        self.state.update(batch, first_offset, first_offset + batch.last_offset_delta)
        self.state.end_offset += batch.last_offset_delta + 1

    def refuses(self, batch: BatchHeader) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            self.state.check(batch)
        return caught.value.code


def test_sequences_follow_each_other() -> None:
    producer = Producer()
    producer.store(header(0, 3))
    producer.store(header(3, 2))
    assert producer.refuses(header(6)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.refuses(header(4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.refuses(header(1, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.store(header(5))


def test_the_last_five_batches_are_recognised_with_their_offsets() -> None:
    producer = Producer()
    for number in range(7):
        producer.store(header(number * 2, 2, timestamp=number))
    for number in (2, 3, 4, 5, 6):
        assert producer.state.check(header(number * 2, 2)) == StoredBatch(
            number * 2, number * 2 + 1, number * 2, number * 2 + 1, number
        )
    assert producer.refuses(header(2, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere() -> None:
    producer = Producer()
    producer.store(header(41, 2))
    assert producer.refuses(header(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.store(header(43))


def test_sequences_wrap() -> None:
    producer = Producer()
    producer.store(header(MAX_SEQUENCE - 2, 2))
    assert producer.refuses(header(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.store(header(MAX_SEQUENCE, 3))
    assert producer.state.check(header(MAX_SEQUENCE, 3)) == StoredBatch(MAX_SEQUENCE, 1, 2, 4, 1000)
    producer.store(header(2))
    producer.store(header(3, MAX_SEQUENCE - 2))
    producer.store(header(0))


def test_epochs_fence() -> None:
    producer = Producer()
    producer.store(header(0, 5, epoch=3))
    assert producer.refuses(header(5, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.refuses(header(5, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.store(header(0, epoch=4))
    assert producer.refuses(header(0, 5, epoch=3)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [batch.first_offset for batch in producer.state.producers[PRODUCER].batches] == [5]


def test_checking_changes_nothing() -> None:
    producer = Producer()
    producer.store(header(0))
    producer.state.check(header(0, epoch=9))
    producer.state.check(header(1))
    assert producer.state.producers[PRODUCER].epoch == 0
    assert len(producer.state.producers[PRODUCER].batches) == 1


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    producer = Producer()
    producer.store(header(0, 2))
    producer.store(header(2, 2, transactional=True))
    producer.store(header(4, 2, transactional=True))
    entry = producer.state.producers[PRODUCER]
    assert entry.current_txn_first_offset == 2
    assert producer.refuses(header(6)) == ErrorCode.INVALID_TXN_STATE
    producer.state.end_transaction(header(-1, timestamp=77), coordinator_epoch=9)
    assert (entry.current_txn_first_offset, entry.coordinator_epoch, entry.last_timestamp) == (-1, 9, 77)
    producer.store(header(6))


def test_silent_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    producer = Producer()
    producer.store(header(0, timestamp=1000))
    producer.state.remove_expired(1999, 1000)
    assert PRODUCER in producer.state.producers
    producer.state.remove_expired(2000, 1000)
    assert PRODUCER not in producer.state.producers
    producer.store(header(5, transactional=True, timestamp=1000))
    producer.state.remove_expired(10_000, 1000)
    assert PRODUCER in producer.state.producers


def test_a_snapshot_keeps_the_last_batch() -> None:
    entries = [
        ProducerEntry(1, 2, 3, 4000, 55, [StoredBatch(0, 4, 90, 94, 1), StoredBatch(5, 9, 95, 99, 4000)]),
        ProducerEntry(2, 0, -1, 4000, -1, [StoredBatch(MAX_SEQUENCE - 1, 1, 10, 13, 4000)]),
        ProducerEntry(3, 7, 8, 9, -1, []),
    ]
    found = decode_snapshot(encode_snapshot(entries))
    assert [(e.producer_id, e.epoch, e.coordinator_epoch, e.last_timestamp) for e in found] == [
        (1, 2, 3, 4000),
        (2, 0, -1, 4000),
        (3, 7, 8, 9),
    ]
    assert [e.current_txn_first_offset for e in found] == [55, -1, -1]
    assert [e.batches for e in found] == [entries[0].batches[1:], entries[1].batches, []]


def test_a_damaged_snapshot_is_refused() -> None:
    data = encode_snapshot([ProducerEntry(1, 2)])
    cut = data[:-46]
    for broken in (b"", data[:5], data[:-1], data + b"\0", cut, b"\0\2" + data[2:], data[:-1] + b"?"):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(broken)
