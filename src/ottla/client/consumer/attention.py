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
from ottla.client.consumer.prompt_wait import PromptWait
from ottla.client.errors import Interrupted, OttlaError

_NEVER = float("inf")


class Attention:
    """Belongs to the loop. `on_ready` is set by who waits without a task: it is told to look again.

    There is one timer for all who wait, and it is left alone when a wait ends before its time, as nearly all do.
    """

    def __init__(self, prefetch: Prefetch) -> None:
        self._prefetch = prefetch
        self._errors: deque[OttlaError] = deque()
        self._visits: deque[tuple[Callable[[], Awaitable[None]], asyncio.Future[None]]] = deque()
        self._visiting: asyncio.Task[None] | None = None
        self._waiting: dict[PromptWait, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = _NEVER
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

    async def visit(self, work: Callable[[], Awaitable[None]], *, while_awaited: bool = False) -> None:
        """Have `work` done inside of a call of the user; returns, or raises, when it was.

        It is done also when nobody waits for that any more (the wait was cancelled): what happened is told. With
        `while_awaited` it is not begun then: what the group asked for is void when it asks no longer.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        visit = (work, done)
        self._visits.append(visit)
        self._ask_for_user()
        try:
            await done
        finally:
            if while_awaited and visit in self._visits:
                self._visits.remove(visit)

    def _ask_for_user(self) -> None:
        self._prefetch.interrupt()
        self.wake()

    def wake(self) -> None:
        """Something changed for whoever waits: records came, or something is to be received."""
        for wait in list(self._waiting):
            wait.end(True)
        if self.on_ready is not None:
            self.on_ready()

    def wake_at_once(self) -> None:
        """The same, and whoever waits goes on before this returns, where that can be: call it last."""
        if self.on_ready is not None:
            self.on_ready()
        for wait in list(self._waiting):
            wait.end(True, at_once=True)

    async def receive(self) -> None:
        """Do what waits for the user, and raise what the user must know. Nothing else may happen meanwhile."""
        while self._visiting is not None or self._visits:
            if self._visiting is None:
                self._visiting = asyncio.get_running_loop().create_task(self._receive_visit(*self._visits.popleft()))
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

    async def _receive_visit(self, work: Callable[[], Awaitable[None]], done: asyncio.Future[None]) -> None:
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

    def begin_to_wait(self, timeout_seconds: float | None) -> PromptWait | None:
        """What to await until `wake`, or until the time is over, which is False; `end_wait` comes after it. None where
        something is there already."""
        if self.is_wanted or self._prefetch.has_ready:
            return None
        return self._begin(timeout_seconds)

    def _begin(self, timeout_seconds: float | None) -> PromptWait:
        loop = asyncio.get_running_loop()
        wait = PromptWait(loop)
        deadline = _NEVER
        if timeout_seconds is not None:
            deadline = loop.time() + timeout_seconds
            if deadline < self._timer_at:
                self._set_timer(loop, deadline)
        self._waiting[wait] = deadline
        return wait

    def end_wait(self, wait: PromptWait) -> None:
        self._waiting.pop(wait, None)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = loop.call_at(at, self._on_time, loop)

    def _on_time(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._timer_at = None, _NEVER
        now = loop.time()
        upcoming = _NEVER
        for wait, deadline in list(self._waiting.items()):
            if deadline <= now:
                wait.end(False)
            else:
                upcoming = min(upcoming, deadline)
        if upcoming < _NEVER:
            self._set_timer(loop, upcoming)

    async def wait(self, timeout_seconds: float | None) -> bool:
        """Until `wake`, or the time is over, which is False. Looks before it waits."""
        wait = self.begin_to_wait(timeout_seconds)
        return wait is None or await self._until(wait)

    async def _until(self, wait: PromptWait) -> bool:
        try:
            return await wait
        finally:
            self.end_wait(wait)

    async def wait_for_change(self, timeout_seconds: float) -> None:
        """Until `wake`, whether records are ready or not, or the time is over."""
        await self._until(self._begin(timeout_seconds))

    async def wait_for_visit(self, leaving: "asyncio.Task[None]") -> None:
        """Until something waits for the user, or that task is done."""
        wait = self._begin(None)
        change = asyncio.ensure_future(self._until(wait))
        try:
            either: set[asyncio.Future[Any]] = {change, leaving}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
            self.end_wait(wait)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
