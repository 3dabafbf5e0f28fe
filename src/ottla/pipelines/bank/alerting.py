"""The rules of one account, step by step in commit order. No Spark here.

- A limit holds from its commit on, for all that is committed after it, until it is changed or dropped. Without one the
  bank's own holds.
- A payment is large if its amount is at or above the limit that holds at its commit. It is looked at when it is booked,
  and again when its amount is corrected.
- A payment (its `event_id`) is told of once: not again when it is booked twice or corrected.
- A step that is not behind the last one has been told before, and is passed over. Steps are ordered by the snapshot
  that capture began with (`incarnation`), then by the database. A newer snapshot has all limits that hold: an account
  has none of before.
"""

from dataclasses import dataclass, field

DEFAULT_LIMIT_CENTS = 100_000

LIMIT, NO_LIMIT, PAYMENT = "limit", "no limit", "payment"


@dataclass(frozen=True)
class Step:
    """`cents` is a limit or an amount; `payment` and `transaction_id` are of a payment."""

    incarnation: int
    position: int
    sequence: int
    kind: str
    cents: int
    payment: str
    transaction_id: int
    event_time: int
    commit_time: int

    @property
    def place(self) -> tuple[int, int, int]:
        """By which the steps of an account are ordered."""
        return self.incarnation, self.position, self.sequence


@dataclass(frozen=True)
class Alert:
    """A payment, and the limit that it reached."""

    step: Step
    limit_cents: int


@dataclass
class Account:
    """What has to be known of an account to go on."""

    limit_cents: int = DEFAULT_LIMIT_CENTS
    place: tuple[int, int, int] = (0, -1, -1)
    alerted: list[str] = field(default_factory=list)

    def take(self, step: Step) -> "Alert | Step | None":
        """An alert, or a step that changed the limit, or nothing to tell."""
        if step.place <= self.place:
            return None
        if step.incarnation > self.place[0]:
            self.limit_cents = DEFAULT_LIMIT_CENTS
        self.place = step.place
        if step.kind != PAYMENT:
            self.limit_cents = step.cents if step.kind == LIMIT else DEFAULT_LIMIT_CENTS
            return step
        if step.cents < self.limit_cents or step.payment in self.alerted:
            return None
        self.alerted.append(step.payment)
        return Alert(step, self.limit_cents)
