"""Answers that another request has brought about: long polls that a produced batch has ended.

They are given when everything that was received with that request is carried out, and before it is answered itself.
The record is what somebody waits for most of all, and an acknowledgement that leaves first wakes a producer which,
where processors are few, takes the broker's place before the record is on its way.

What must stay true:
- A request with many partitions, or many requests in one piece, end a poll once, with all that they brought.
- An acknowledgement waits for a few answers at most: the others come in the next turn of the loop.
- Whatever is added is given, also where the request that brought it about ends its connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable

MOST_BEFORE_OWN = 4


class DueAnswers:
    """`hold` to `release` encloses the handling of what one client has sent; `give_first` is called in between."""

    __slots__ = ("_due", "_is_giving", "_is_held", "_is_scheduled")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_held = False
        self._is_giving = False
        self._is_scheduled = False

    def add(self, give: Callable[[], None]) -> None:
        """Have it called soon. It must not raise."""
        self._due.append(give)
        if not self._is_held:
            self._schedule()

    def hold(self) -> None:
        self._is_held = True

    def give_first(self) -> None:
        """Some of them, now, if there are any."""
        if self._due:
            self._give(MOST_BEFORE_OWN)

    def release(self) -> None:
        self._is_held = False
        if self._due:
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._give_all)

    def _give_all(self) -> None:
        """Those that are due by now; what comes meanwhile has its own turn."""
        self._is_scheduled = False
        try:
            self._give(len(self._due))
        finally:
            if self._due:
                self._schedule()

    def _give(self, most: int) -> None:
        """An answer may set a connection free whose requests come here again: one at a time is enough."""
        if self._is_giving:
            return
        self._is_giving = True
        try:
            for _ in range(min(len(self._due), most)):
                self._due.popleft()()
        finally:
            self._is_giving = False
