"""Idempotent producers: what is a repetition, what is a gap, and what is kept of them."""

import pytest

from ottla.log.own_batch import OwnBatch
from ottla.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.log.producer_state import MAX_EPOCH, MAX_SEQUENCE, Permit, ProducerEntry, ProducerState, StoredBatch
from ottla.log.transaction_index import AbortedTransaction
from ottla.log.verification import MOST_KEPT, UNVERIFIED, Verification
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import BatchHeader, ControlType, EndTransactionMarker

PRODUCER = 7
COMMIT = EndTransactionMarker(ControlType.COMMIT, 9)
ABORT = EndTransactionMarker(ControlType.ABORT, 9)


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
        assert self.state.check(batch, UNVERIFIED) is None
        first_offset = self.state.end_offset
        self.state.update(batch, first_offset, first_offset + batch.last_offset_delta)
        self.state.end_offset += batch.last_offset_delta + 1

    def refuses(self, batch: BatchHeader, permit: Permit | None = UNVERIFIED) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            self.state.check(batch, permit)
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
    assert producer.state.end_transaction(header(-1, timestamp=77), COMMIT, 6) is None
    assert (entry.current_txn_first_offset, entry.coordinator_epoch, entry.last_timestamp) == (-1, 9, 77)
    producer.store(header(6))


def verified(producer: Producer, sequence: int = 0, epoch: int = 0, *, begins_at_zero: bool = False) -> Verification:
    return producer.state.verifications.begin(PRODUCER, sequence, epoch, begins_at_zero=begins_at_zero, now_ms=0)


def test_a_transaction_begins_with_a_verification_only() -> None:
    producer = Producer()
    first = header(0, transactional=True)
    assert producer.refuses(first, None) == ErrorCode.INVALID_TXN_STATE
    verification = verified(producer)
    assert producer.refuses(first, None) == ErrorCode.INVALID_TXN_STATE
    assert producer.state.check(first, verification) is None
    producer.store(first)
    # From now on it is open, and needs none.
    assert producer.state.check(header(1, transactional=True)) is None
    assert not len(producer.state.verifications)


def test_a_marker_ends_a_verification_that_is_under_way() -> None:
    producer = Producer()
    verification = verified(producer)
    producer.state.end_transaction(header(-1), ABORT, 0)
    assert producer.refuses(header(0, transactional=True), verification) == ErrorCode.INVALID_TXN_STATE
    later = verified(producer)
    assert later is not verification
    assert producer.refuses(header(0, transactional=True), verification) == ErrorCode.INVALID_TXN_STATE
    assert producer.state.check(header(0, transactional=True), later) is None


def test_another_epoch_is_another_transaction() -> None:
    producer = Producer()
    producer.store(header(0, transactional=True))
    assert producer.refuses(header(0, epoch=1, transactional=True), None) == ErrorCode.INVALID_TXN_STATE


def test_a_repetition_needs_no_verification() -> None:
    producer = Producer()
    producer.store(header(0, 2, transactional=True))
    producer.state.end_transaction(header(-1), COMMIT, 2)
    assert producer.state.check(header(0, 2, transactional=True)) == StoredBatch(0, 1, 0, 1, 1000)
    assert producer.refuses(header(2, transactional=True), None) == ErrorCode.INVALID_TXN_STATE


def test_a_transaction_begins_with_the_lowest_sequence_that_was_seen() -> None:
    producer = Producer()
    verification = verified(producer, sequence=5)
    assert verified(producer, sequence=3) is verification
    assert producer.refuses(header(5, transactional=True), verification) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.state.check(header(3, transactional=True), verification) is None
    # A new epoch counts anew.
    assert verified(producer, sequence=8, epoch=1) is verification
    assert producer.state.check(header(8, epoch=1, transactional=True), verification) is None


def test_where_each_transaction_has_its_epoch_it_begins_with_sequence_0() -> None:
    producer = Producer()
    verification = verified(producer, sequence=4, begins_at_zero=True)
    assert producer.refuses(header(4, transactional=True), verification) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.state.check(header(0, transactional=True), verification) is None


def test_verifications_are_bounded_and_expire() -> None:
    producer = Producer()
    verifications = producer.state.verifications
    for number in range(MOST_KEPT + 5):
        verifications.begin(number, 0, 0, begins_at_zero=False, now_ms=number)
    assert len(verifications) == MOST_KEPT
    assert verifications.get(4) is None
    producer.state.remove_expired(MOST_KEPT + 1000, 1000)
    assert len(verifications) == 4


def test_an_aborted_transaction_is_handed_to_the_index() -> None:
    producer = Producer()
    producer.store(header(0, 2, transactional=True))
    producer.state.update(BatchHeader(producer_id=8, producer_epoch=0, attributes=0x10), 2, 2)
    aborted = producer.state.end_transaction(header(-1), ABORT, 3)
    assert aborted == AbortedTransaction(PRODUCER, 0, 3, last_stable_offset=2)
    assert producer.state.end_transaction(header(-1), ABORT, 4) is None, "nothing was open"


def test_markers_fence_by_the_epochs_of_producer_and_coordinator() -> None:
    producer = Producer()
    producer.store(header(0, epoch=3, transactional=True))
    control = header(-1, epoch=2, transactional=True)
    assert producer.refuses(control, OwnBatch(ABORT)) == ErrorCode.INVALID_PRODUCER_EPOCH
    control = header(-1, epoch=3, transactional=True)
    assert producer.refuses(control, OwnBatch(ABORT, 2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.state.check(control, OwnBatch(ABORT, 1)) is None
    producer.state.end_transaction(control, ABORT, 1)
    # The same marker once more, as a coordinator writes it that does not know whether it was written.
    assert producer.state.check(control, OwnBatch(ABORT, 1)) is None
    older = EndTransactionMarker(ControlType.ABORT, 8)
    assert producer.refuses(control, OwnBatch(older)) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert producer.state.check(header(-1, epoch=4, transactional=True), OwnBatch(ABORT, 2)) is None
    # Where nothing is open the same epoch is a repetition; where something is, a marker of another transaction.
    assert producer.state.check(control, OwnBatch(ABORT, 2)) is None
    producer.store(header(1, epoch=3, transactional=True))
    assert producer.refuses(control, OwnBatch(ABORT, 2)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_last_epoch_of_a_producer_has_no_next_one() -> None:
    producer = Producer()
    producer.store(header(0, epoch=MAX_EPOCH, transactional=True))
    assert producer.state.check(header(-1, epoch=MAX_EPOCH, transactional=True), OwnBatch(ABORT, 2)) is None


def test_what_a_coordinator_writes_has_no_sequence() -> None:
    producer = Producer()
    own = header(-1, epoch=3, transactional=True)
    assert producer.state.check(own, OwnBatch()) is None
    producer.state.update(own, 0, 0)
    assert producer.state.producers[PRODUCER].current_txn_first_offset == 0
    assert producer.state.check(own, OwnBatch()) is None
    assert producer.refuses(header(-1, epoch=2, transactional=True), OwnBatch()) == ErrorCode.INVALID_PRODUCER_EPOCH


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
