"""What a consumer sees of its group, and what the group asks of the consumer.

A consumer with a group and a subscription owns one `Membership`. It belongs to the consumer's event loop; `run` is a
task that joins, heartbeats, rejoins and reconciles by itself, also while user code works. The group changes what the
consumer owns only through `Rebalancing`, in this order, never two at a time:

| call            | when                                                | `Membership.assignment` meanwhile         |
|-----------------|-----------------------------------------------------|-------------------------------------------|
| `revoke(parts)` | the group wants them back, and they are still ours  | still has them; not any more afterwards   |
| `lose(parts)`   | others may have them already: a commit would fail   | no longer has them                        |
| `assign(parts)` | they are ours from now on                           | has them, beside those that were kept     |

The group waits for `revoke` and `lose` to return before it tells anybody that the partitions are free, and heartbeats
go on meanwhile: so they may wait for the user's thread to come back (to commit what it worked on, to run listeners),
and `max.poll.interval.ms` ends the wait.
"""

import re
from typing import NamedTuple, Protocol

from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

Topics = frozenset[str] | re.Pattern[str]
"""What a consumer subscribes to: names, or an expression that whole names must match."""

NO_GENERATION = -1


class Generation(NamedTuple):
    """Who a consumer is to the coordinator, as OffsetCommit and TxnOffsetCommit must say it.

    `generation` is the classic group's generation, or the member's epoch in a group of the next one.
    """

    member_id: str = ""
    generation: int = NO_GENERATION
    instance_id: str | None = None

    @property
    def is_member(self) -> bool:
        """Whether the group knows it now; what such a consumer commits is refused otherwise."""
        return self.generation > NO_GENERATION and self.member_id != ""


class Rebalancing(Protocol):
    """The consumer's side. What these raise ends nothing: it is kept and raised by `raise_if_lost`, and the rebalance
    goes on, as if they had returned. They may be cancelled: by `leave`, which revokes once more what is still owned,
    and when the membership ends meanwhile, which loses it."""

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these, commit them (if auto) and run listeners. Never empty."""
        ...

    async def lose(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these, forget their positions and run listeners; do not commit. Never empty."""
        ...

    async def assign(self, partitions: frozenset[TopicPartition]) -> None:
        """Read these from now on, and run listeners. Only those that are new; empty when a rebalance brought none."""
        ...

    def failed(self, error: OttlaError) -> None:
        """`raise_if_lost` has something to raise: wake whoever polls."""
        ...


class Membership(Protocol):
    """One per consumer with a group. All of it belongs to the loop of the consumer, except where it says otherwise."""

    @property
    def group_id(self) -> str: ...

    @property
    def generation(self) -> Generation:
        """Safe to read from any thread."""
        ...

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What is owned now. Safe to read from any thread."""
        ...

    @property
    def is_rebalancing(self) -> bool:
        """Between a reason to rejoin and the assignment that follows. Safe to read from any thread."""
        ...

    def subscribe(self, topics: Topics) -> None:
        """Ask for these instead of what was asked for before. Watches their metadata, too. No names at all are
        `unsubscribe`."""
        ...

    def unsubscribe(self) -> None:
        """Ask for nothing: everything is revoked and the group is left. `subscribe` may follow."""
        ...

    async def run(self) -> None:
        """Joins, heartbeats and rejoins until `leave` or a final error. Runs once; a cancelled one leaves nothing
        behind, and does not leave the group."""
        ...

    def polled(self) -> None:
        """User code came back and asked for records: `max.poll.interval.ms` starts again. Safe from any thread, and
        cheap enough for every call; a consumer that had left for that reason rejoins."""
        ...

    def waiting(self, is_waiting: bool) -> None:
        """A call of the user begins (True) or ends (False) to wait for records, which may take longer than
        `max.poll.interval.ms`: that does not run while any call waits. Counts as `polled`, too. Safe from any
        thread."""
        ...

    def raise_if_lost(self) -> None:
        """Raise what a user must know: PollIntervalExceeded and errors of listeners once, a final error every time.
        Safe from any thread."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Ask for a new assignment, although nothing changed (`enforce_rebalance`). Nothing with KIP-848, whose broker
        decides."""
        ...

    def commit_refused(self, code: ErrorCode, generation: Generation) -> None:
        """A commit with that generation was answered with this error. Codes that say nothing about the membership are
        ignored, and so is what concerns a generation that is no longer the current one."""
        ...

    async def wait_for_epoch(self, older: Generation, timeout_seconds: float) -> Generation:
        """The next generation after that one, to try a commit again (STALE_MEMBER_EPOCH, ILLEGAL_GENERATION); the same
        one when the time is over."""
        ...

    async def leave(self, timeout_seconds: float) -> None:
        """Revoke everything, leave the group (static members stay in it until their session ends) and end `run`. Raises
        nothing; what could not be done in time is left to the coordinator's session timeout."""
        ...
