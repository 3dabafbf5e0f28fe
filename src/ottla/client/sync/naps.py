"""When a loop that is visited again and again leaves answers where they are, for some milliseconds.

A producer that sends single records, one after the other, sends each of them in a visit (see `lent_loop`). The answers
would wake the loop's thread for each of them, which then wants the interpreter at the very moment at which the rest of
the program does: a consumer of the same records, for example. If nobody waits for them, the answer to one record is
worked on in the visit that sends the next one, and nobody is woken.

What must stay true:
- A loop naps only while `may_nap` says that nobody would notice. Whoever begins to wait says so first and calls `end`
  then; the loop is asleep first and asks then. So one of the two sees the other.
- It naps only where it was visited since it looked last, for `NAP_SECONDS` at most. The last answer is seen by then.
- Where people do wait, now and then, it does not nap at all: to be woken twice for a record is worse than once.
- It can always be woken by its bell, and wakes for its own timers.
"""

import select
from collections.abc import Callable

NAP_SECONDS = 0.01
# So many visits must have come since somebody waited.
_QUIET_VISITS = 64


class Naps:
    """`visits` is counted by whoever visits, `is_asleep` is for whoever holds the loop."""

    are_possible = hasattr(select, "poll")

    def __init__(self, may_nap: Callable[[], bool], bell: int) -> None:
        self._may_nap = may_nap
        self._bell = select.poll()
        self._bell.register(bell, select.POLLIN)
        self._seen_visits = 0
        self._waited_at = 0
        self.visits = 0
        self.is_asleep = False

    def begin(self) -> bool:
        """In the loop's thread: whether to nap now."""
        visits = self.visits
        if visits == self._seen_visits or visits - self._waited_at < _QUIET_VISITS:
            return False
        self._seen_visits = visits
        self.is_asleep = True
        self.is_asleep = self._may_nap()
        return self.is_asleep

    def may_go_on(self) -> bool:
        return self._may_nap()

    def sleep(self, timeout: float | None) -> None:
        seconds = NAP_SECONDS if timeout is None else min(timeout, NAP_SECONDS)
        self._bell.poll(seconds * 1000)

    def end(self) -> bool:
        """From any thread: somebody waits from now on; whether the loop has to be woken for that."""
        self._waited_at = self.visits
        return self.is_asleep
