"""Which batches of a fetch are handed out."""

from __future__ import annotations

import pytest
from tests.unit.client.consumer.stored import Place, batch, chunk, marker, taken

from ottla.client.consumer.batches import contents_of
from ottla.client.errors import CorruptBatch
from ottla.records import ControlType

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def transactional(producer_id: int, base_offset: int, value: bytes) -> bytes:
    return batch([value], base_offset, producer_id=producer_id, transactional=True)


LOG = (
    transactional(1, 0, b"aborted")
    + transactional(2, 1, b"committed")
    + batch([b"plain"], 2)
    + marker(1, 3, ABORT)
    + transactional(1, 4, b"later")
    + marker(2, 5, COMMIT)
    + marker(1, 6, COMMIT)
)


def test_read_uncommitted_sees_everything_but_markers() -> None:
    assert [record.value for record in taken(chunk(LOG))] == [b"aborted", b"committed", b"plain", b"later"]


def test_read_committed_passes_over_aborted_transactions_only() -> None:
    read = chunk(LOG, aborted=[(1, 0)])
    assert [record.value for record in taken(read)] == [b"committed", b"plain", b"later"]
    assert read.next_offset == 7


def test_a_producer_that_aborts_twice_is_followed() -> None:
    log = LOG[: -len(marker(1, 6, COMMIT))] + marker(1, 6, ABORT)
    read = chunk(log, aborted=[(1, 4), (1, 0)])
    assert [record.value for record in taken(read)] == [b"committed", b"plain"]


def test_a_fetch_from_the_middle_of_an_aborted_transaction_hides_it_as_well() -> None:
    log = transactional(1, 1, b"second") + marker(1, 2, ABORT)
    assert taken(chunk(log, 1, aborted=[(1, 0)])) == []


def test_a_producer_without_transactions_is_never_hidden() -> None:
    log = batch([b"idempotent"], 0, producer_id=1)
    assert len(taken(chunk(log, aborted=[(1, 0)]))) == 1


@pytest.mark.parametrize("cut", [1, 30, 61, 62])
def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(cut: int) -> None:
    whole = batch([b"a", b"b"])
    read = chunk(whole + batch([b"c"], 2)[:cut])
    assert [record.value for record in taken(read)] == [b"a", b"b"]
    assert (read.end_offset, read.damage) == (2, None)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused_by_name(magic: int) -> None:
    old = bytearray(batch([b"old"], 1))
    old[16] = magic
    read = chunk(batch([b"new"]) + bytes(old))
    assert [record.value for record in taken(read, 1)] == [b"new"]
    with pytest.raises(CorruptBatch, match=r"orders-3 cannot be read at offset 1: .*before 0\.11 \(magic 0 or 1\)"):
        taken(read)


def test_garbage_is_named_with_its_place() -> None:
    read = chunk(batch([b"a"], 20) + b"\x00" * 100, 20)
    assert [record.offset for record in taken(read, 1)] == [20]
    with pytest.raises(CorruptBatch) as raised:
        taken(read)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 3, 21)


def test_a_broken_marker_of_an_aborted_transaction_is_an_error_at_its_place() -> None:
    broken = bytearray(transactional(1, 0, b"x") + marker(1, 1, ABORT))
    broken[-10] ^= 1
    contents = contents_of(Place(), memoryview(bytes(broken)), [(1, 0)], wanted_offset=0)
    assert isinstance(contents.damage, CorruptBatch)
    assert (contents.damage.offset, contents.damage.next_offset, contents.end_offset) == (1, 2, 1)


def test_the_epoch_behind_the_contents_is_that_of_the_last_batch() -> None:
    contents = contents_of(Place(), memoryview(batch([b"a"]) + batch([b"b"], 1, epoch=9)), None, wanted_offset=0)
    assert (contents.epoch, contents.end_offset) == (9, 2)
