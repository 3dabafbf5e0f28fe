"""The rules of one account where capture began anew, with positions that are lower than before."""

from __future__ import annotations

from dataclasses import replace

from ottla.pipelines.bank.alerting import DEFAULT_LIMIT_CENTS, LIMIT, PAYMENT, Account, Alert, Step

PAID = Step(
    incarnation=1_000,
    position=500,
    sequence=0,
    kind=PAYMENT,
    cents=DEFAULT_LIMIT_CENTS,
    payment="first",
    transaction_id=1,
    event_time=0,
    commit_time=0,
)


def test_payments_of_another_database_are_told_of_although_its_positions_are_lower() -> None:
    account = Account()
    later = replace(PAID, incarnation=2_000, position=3, payment="second")
    assert isinstance(account.take(PAID), Alert)
    assert isinstance(account.take(later), Alert)
    assert account.take(replace(PAID, position=501, payment="of before")) is None
    assert account.take(replace(later, payment="again")) is None


def test_a_payment_that_was_told_of_is_not_told_of_again_when_capture_begins_anew() -> None:
    account = Account()
    account.take(PAID)
    assert account.take(replace(PAID, incarnation=2_000, position=3)) is None


def test_limits_of_before_end_with_a_newer_snapshot() -> None:
    account = Account()
    account.take(replace(PAID, kind=LIMIT, cents=5))
    assert account.take(replace(PAID, incarnation=2_000, cents=5)) is None
    assert isinstance(account.take(replace(PAID, position=501, incarnation=2_000)), Alert)
