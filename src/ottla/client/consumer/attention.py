"""What the user of a consumer must be there for: errors, and changes of the assignment.

A rebalance may take partitions away, but not behind the user's back: what was handed out is committed, and listeners
run, when the user comes back into the consumer. So the group leaves a `visit` here and waits; whoever polls, closes or
unsubscribes receives it, in its own call. Takers in other threads find nothing meanwhile (`Prefetch.interrupt`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.client.consumer.prefetch import Prefetch
from ottla.client.errors import Interrupted, OttlaError


class Attention:
    """Belongs to the loop. `on_ready` is set by who waits without a task: it is told to look again."""

    def __init__(self, prefetch: Prefetch) -> None:
        self._prefetch = prefetch
        self._errors: deque[OttlaError] = deque()
        self._visits: deque[tuple[Callable[[], Awaitable[None]], asyncio.Future[None]]] = deque()
        self._visiting: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Future[bool]] = set()
        self.on_ready: Callable[[], None] | None = None

    @property
    def is_wanted(self) -> bool:
        return bool(self._errors or self._visits or self._visiting is not None)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for records now."""
        return self.on_ready is not None or bool(self._waiting)

    def report(self, error: OttlaError) -> None:
        """Raise it in the user's next call, or in the one that waits now."""
        self._errors.append(error)
        self._ask_for_user()

    def wake_up(self) -> None:
        self.report(Interrupted("wakeup was called"))

    async def visit(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have `work` done inside of a call of the user; returns, or raises, when it was."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._visits.append((work, done))
        self._ask_for_user()
        await done

    def _ask_for_user(self) -> None:
        self._prefetch.interrupt()
        self.wake()

    def wake(self) -> None:
        """Something changed for whoever waits: records came, or something is to be received."""
        for future in list(self._waiting):
            _finish(future)
        if self.on_ready is not None:
            self.on_ready()

    async def receive(self) -> None:
        """Do what waits for the user, and raise what the user must know. Nothing else may happen meanwhile."""
        while self._visiting is not None or self._visits:
            if self._visiting is None:
                self._visiting = asyncio.get_running_loop().create_task(self._receive_visit())
            # A poll that is cancelled must not leave a rebalance half-done: the next one waits for it.
            await asyncio.shield(self._visiting)
        if self._errors:
            error = self._errors.popleft()
            self.let_go_on()
            raise error
        self.let_go_on()

    def let_go_on(self) -> None:
        """Nothing waits for the user any more: takers find records again."""
        if self._prefetch.is_interrupted and not self.is_wanted:
            self._prefetch.proceed()

    async def _receive_visit(self) -> None:
        work, done = self._visits.popleft()
        try:
            await work()
        except Exception as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(None)
        finally:
            self._visiting = None

    async def wait(self, timeout_seconds: float | None) -> bool:
        """Until `wake`, or the time is over, which is False. Looks before it waits."""
        if self.is_wanted or self._prefetch.has_ready:
            return True
        return await self._wait_until(timeout_seconds)

    async def _wait_until(self, timeout_seconds: float | None) -> bool:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = None if timeout_seconds is None else loop.call_later(timeout_seconds, _finish, future, False)
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)
            if timer is not None:
                timer.cancel()

    async def wait_for_change(self, timeout_seconds: float) -> None:
        """Until `wake`, whether records are ready or not, or the time is over."""
        await self._wait_until(timeout_seconds)

    async def wait_for_visit(self, leaving: "asyncio.Task[None]") -> None:
        """Until something waits for the user, or that task is done."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            either: set[asyncio.Future[Any]] = {future, leaving}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(future)
            future.cancel()


def _finish(future: "asyncio.Future[bool]", is_woken: bool = True) -> None:
    if not future.done():
        future.set_result(is_woken)
