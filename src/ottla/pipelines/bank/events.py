"""What people do at the bank: payments, corrections, cancelled payments, and limits that they set, change and drop.

It happens in a database: `writes` says what is written there, one commit each. `events` are the same as capture would
tell them, for runs without a database, with what a lesser connector adds: changes that are told twice, and broken ones.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.capture.changes import Change, JsonValue, Operation, Row, Table
from ottla.pipelines.frame.generating import Event

CHANGES = "mybank.changes"
TRANSACTIONS, THRESHOLDS = "transactions", "thresholds"
TABLES = (Table(TRANSACTIONS, "account", "event_time"), Table(THRESHOLDS, "account"))
LATENESS_SECONDS = 600

_ACCOUNTS = 40
_LATENESS_MS = LATENESS_SECONDS * 1000
_DUPLICATES, _BROKEN = 0.03, 0.02
# Of all writes to the database; the rest are payments. The shares of payments that came late, and that nobody can read.
_NEW_LIMIT, _NO_LIMIT, _CORRECTION, _CANCELLATION = 0.08, 0.01, 0.06, 0.03
_BOOKED_TWICE, _DELAYED, _TOO_LATE, _MALFORMED = 0.03, 0.1, 0.02, 0.02


@dataclass(frozen=True)
class Write:
    """One committed change of one row. `before` and `after` are whole rows."""

    time_ms: int
    table: str
    operation: Operation
    before: Row | None
    after: Row | None


def writes(seed: int, start_ms: int, rate: float) -> Iterator[Write]:
    """Without end, about `rate` a second."""
    return _Bank(seed, start_ms, rate).writes()


def events(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """The writes as records of the topic of changes, each at its commit; some come twice, some are broken."""
    choices = random.Random(f"{seed} disorder")
    times = {table.name: table.time for table in TABLES}
    told: list[Event] = []
    for position, write in enumerate(writes(seed, start_ms, rate), _first_number(start_ms)):
        change = Change(write.table, write.operation, write.before, write.after, position, write.time_ms)
        row = write.after or write.before or {}
        key = str(row["account"]).encode()
        event = Event(CHANGES, key, change.to_json(0, 0, times[write.table]), write.time_ms)
        yield event
        told = [*told[-50:], event]
        if choices.random() < _DUPLICATES:
            yield choices.choice(told)._replace(timestamp_ms=write.time_ms)
        if choices.random() < _BROKEN:
            yield event._replace(value=choices.choice([event.value[:-9], b"not json", None]) if event.value else None)


def _first_number(start_ms: int) -> int:
    """Numbers of a later run are larger than all of an earlier one, as those of a database would be."""
    return start_ms * 1000


class _Bank:
    """The rows that are there, and what is done to them next."""

    def __init__(self, seed: int, start_ms: int, rate: float) -> None:
        self._choices = random.Random(seed)
        self._seed = seed
        self._now_ms = float(start_ms)
        self._rate = rate
        self._limits: dict[str, Row] = {}
        self._payments: list[Row] = []
        self._numbers = _first_number(start_ms)

    def writes(self) -> Iterator[Write]:
        while True:
            self._now_ms += self._choices.expovariate(self._rate) * 1000
            yield from self._next(f"acc-{self._choices.randrange(_ACCOUNTS):02}")

    def _next(self, account: str) -> Iterator[Write]:
        dice = self._choices.random()
        for share, act in (
            (_NEW_LIMIT, self._set_limit),
            (_NO_LIMIT, self._drop_limit),
            (_CORRECTION, self._correct),
            (_CANCELLATION, self._cancel),
        ):
            if dice < share:
                yield from act(account)
                return
            dice -= share
        yield from self._pay(account)

    def _write(self, table: str, operation: Operation, before: Row | None, after: Row | None) -> Write:
        return Write(int(self._now_ms), table, operation, before, after)

    def _set_limit(self, account: str) -> Iterator[Write]:
        before = self._limits.get(account)
        after: Row = {"account": account, "limit_cents": self._choices.randrange(100, 3_000) * 100}
        self._limits[account] = after
        yield self._write(THRESHOLDS, Operation.UPDATE if before else Operation.INSERT, before, after)

    def _drop_limit(self, account: str) -> Iterator[Write]:
        before = self._limits.pop(account, None)
        if before is not None:
            yield self._write(THRESHOLDS, Operation.DELETE, before, None)

    def _pay(self, account: str) -> Iterator[Write]:
        self._numbers += 1
        payment: Row = {
            "id": self._numbers,
            "account": account,
            "event_id": f"{self._seed:x}-p{self._numbers}",
            "amount_cents": self._amount(),
            "event_time": int(self._now_ms),
        }
        dice = self._choices.random()
        if dice < _MALFORMED:
            payment["amount_cents"] = self._choices.choice([None, 0, -500])
        elif dice < _MALFORMED + _TOO_LATE:
            payment["event_time"] = int(self._now_ms) - self._choices.randint(_LATENESS_MS + 60_000, 9 * _LATENESS_MS)
        elif dice < _MALFORMED + _TOO_LATE + _DELAYED:
            payment["event_time"] = int(self._now_ms) - self._choices.randint(1, _LATENESS_MS - 60_000)
        yield self._book(payment)
        if self._choices.random() < _BOOKED_TWICE:
            self._numbers += 1
            yield self._book({**payment, "id": self._numbers})

    def _book(self, payment: Row) -> Write:
        self._payments = [*self._payments[-200:], payment]
        return self._write(TRANSACTIONS, Operation.INSERT, None, payment)

    def _correct(self, _account: str) -> Iterator[Write]:
        if self._payments:
            number = self._choices.randrange(len(self._payments))
            before = self._payments[number]
            after = {**before, "amount_cents": self._amount()}
            self._payments[number] = after
            yield self._write(TRANSACTIONS, Operation.UPDATE, before, after)

    def _cancel(self, _account: str) -> Iterator[Write]:
        if self._payments:
            before = self._payments.pop(self._choices.randrange(len(self._payments)))
            yield self._write(TRANSACTIONS, Operation.DELETE, before, None)

    def _amount(self) -> JsonValue:
        """Most are small, few are large."""
        return int(self._choices.lognormvariate(10.3, 1.2)) + 1
