"""The index of aborted transactions: what a reader of some offsets is told, and which files are believed."""

import pytest

from ottla.log.offset_index import CorruptIndex
from ottla.log.transaction_index import ENTRY_BYTES, AbortedTransaction, TransactionIndex

FIRST = AbortedTransaction(7, 3, 10, 2)
LONG = AbortedTransaction(8, 2, 20, 12)
LAST = AbortedTransaction(7, 12, 30, 31)


def index_of(*aborted: AbortedTransaction) -> TransactionIndex:
    index = TransactionIndex()
    for each in aborted:
        index.append(each)
    return index


@pytest.mark.parametrize(
    ("from_offset", "to_offset", "expected", "complete"),
    [
        (0, 2, [], True),
        (0, 3, [LONG], True),
        (0, 4, [FIRST, LONG], True),
        (10, 11, [FIRST, LONG], True),
        (11, 12, [LONG], True),
        (11, 13, [LONG, LAST], True),
        (21, 31, [LAST], True),
        (21, 32, [LAST], False),
        (31, 40, [], False),
    ],
)
def test_those_that_reach_into_what_is_read(
    from_offset: int, to_offset: int, expected: list[AbortedTransaction], complete: bool
) -> None:
    found: list[AbortedTransaction] = []
    assert index_of(FIRST, LONG, LAST).collect(from_offset, to_offset, found) is complete
    assert found == expected


def test_a_file_has_34_bytes_an_entry() -> None:
    index = index_of(FIRST, LAST)
    data = index.to_bytes()
    assert len(data) == 2 * ENTRY_BYTES == 68
    assert data[:18] == b"\0\0" + (7).to_bytes(8) + (3).to_bytes(8)
    assert list(TransactionIndex.from_bytes(data, 10)) == [FIRST, LAST]


@pytest.mark.parametrize(
    "data",
    [
        index_of(FIRST).to_bytes()[:-1],
        b"\0\1" + index_of(FIRST).to_bytes()[2:],
        index_of(LAST, FIRST).to_bytes(),
        index_of(FIRST._replace(last_offset=8)).to_bytes(),
        index_of(FIRST._replace(first_offset=-1)).to_bytes(),
    ],
    ids=["torn", "another version", "out of order", "of another segment", "no offset"],
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndex):
        TransactionIndex.from_bytes(data, 9)
