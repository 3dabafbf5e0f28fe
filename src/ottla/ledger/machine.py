"""What a coordinator has to be, for a ledger to run it.

A decision looks at the state and changes none of what is kept: only `replay` does, when the entries are in the log.
Beside what is kept, a machine may have what no restart needs (who waits, timers); that it changes as it goes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from ottla.ledger.entries import Entry
from ottla.protocol.errors import KafkaError

Answer = TypeVar("Answer")
NO_PRODUCER_ID = -1


class Writer(NamedTuple):
    """The producer in whose transaction entries are written: they count once it commits."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Decision(Generic[Answer]):
    """What becomes of an event: the entries to be written, and the answer that leaves once they are committed.

    All entries are written in one batch, or none is. Without entries the answer leaves once everything is committed
    that was written before, since that is what was looked at. `written` is told how it ended, with None when all is
    well, before the answer leaves; nothing was replayed if it is told of an error.

    One that is not `is_atomic` may be written in as many batches as it takes, nothing else between them; after an error
    the first of them may count, so each entry has to be right by itself.
    """

    answer: Answer
    entries: Sequence[Entry] = ()
    writer: Writer | None = None
    written: Callable[[KafkaError | None], None] | None = None
    is_atomic: bool = True


class Replayed(NamedTuple):
    """A record as it is in the log. `producer_id` is -1 outside of transactions."""

    offset: int
    timestamp: int
    entry: Entry
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1


class Machine(Protocol):
    """The state of one partition of the ledger's topic."""

    def replay(self, record: Replayed) -> None:
        """Change the state as the record says. Never refuses: the log is right."""
        ...

    def replay_end(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        """The producer's transaction ended: what it wrote counts from now on, or never does."""
        ...

    def loaded(self) -> None:
        """Everything was replayed; requests come from now on, and timers may be set."""
        ...

    def unload(self, error: KafkaError) -> None:
        """Another broker has it from now on: whoever waits is told so. Timers are gone already."""
        ...


class Timers(Protocol):
    """What happens later unless something else happens first. One timer a key; times are those of the loop."""

    def schedule(self, key: str, delay_ms: float, decide: Callable[[], Decision[None]]) -> None:
        """Decide then, as if a request had come; takes the place of the timer with this key."""
        ...

    def cancel(self, key: str) -> None:
        """Not an error when there is none."""
        ...

    def is_scheduled(self, key: str) -> bool: ...
