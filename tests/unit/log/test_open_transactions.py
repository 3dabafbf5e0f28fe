"""Where readers of committed records have to stop."""

from ottla.log.open_transactions import NONE_UNSTABLE, OpenTransactions


def test_the_oldest_that_is_not_decided_counts() -> None:
    transactions = OpenTransactions()
    assert transactions.first_unstable_offset == NONE_UNSTABLE
    transactions.begin(1, 10)
    transactions.begin(2, 20)
    assert transactions.first_unstable_offset == 10
    assert transactions.end(1, 30) == 20, "all below was decided when the marker was written"
    assert transactions.first_unstable_offset == 10, "its marker may still be lost"
    transactions.replicated(30)
    assert transactions.first_unstable_offset == 10, "the marker itself is not below"
    transactions.replicated(31)
    assert transactions.first_unstable_offset == 20
    assert transactions.end(2, 31) == 32
    transactions.replicated(40)
    assert transactions.first_unstable_offset == NONE_UNSTABLE
    assert not transactions.awaits_replication


def test_markers_come_in_another_order_than_transactions() -> None:
    transactions = OpenTransactions()
    for producer_id in range(5):
        transactions.begin(producer_id, producer_id * 10)
    for number, producer_id in enumerate((3, 0, 4, 2, 1)):
        transactions.end(producer_id, 100 + number)
    firsts = []
    for high_watermark in range(100, 106):
        transactions.replicated(high_watermark)
        firsts.append(transactions.first_unstable_offset)
    assert firsts == [0, 0, 10, 10, 10, NONE_UNSTABLE]


def test_those_of_a_snapshot_are_in_no_order() -> None:
    transactions = OpenTransactions([(1, 50), (2, 20), (3, 30)])
    assert transactions.first_unstable_offset == 20
    assert transactions.end(2, 60) == 30
