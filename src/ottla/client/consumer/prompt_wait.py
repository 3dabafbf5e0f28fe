"""What a task awaits until records are there: a future whose task can go on inside of the call that ends the wait.

A future has its task go on in a later turn of the loop, behind whatever else came in this one: the answers to what the
same program has sent, mostly. A record that somebody waits for should not wait for those.

What must stay true:
- A task goes on at once only where no other task is at work, and only for who asks for it: that is whoever has nothing
  left to do in this call, since the code of the user runs inside of it.
- All else is a future's, as far as tasks see one: they ask for `_asyncio_future_blocking`, `get_loop`,
  `add_done_callback`, `cancel` and `result`.
"""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any


class PromptWait:
    """For one task. Awaiting it gives what `end` was given."""

    __slots__ = ("_asyncio_future_blocking", "_callback", "_context", "_is_cancelled", "_is_woken", "_loop", "is_over")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asyncio_future_blocking = False
        self._callback: Callable[[PromptWait], object] | None = None
        self._context: Context | None = None
        self._is_woken = False
        self._is_cancelled = False
        self.is_over = False

    def end(self, is_woken: bool, at_once: bool = False) -> None:
        if not self.is_over:
            self.is_over = True
            self._is_woken = is_woken
            self._tell(at_once)

    def _tell(self, at_once: bool) -> None:
        callback, context = self._callback, self._context
        if callback is None or context is None:
            return
        self._callback = self._context = None
        if at_once and asyncio.current_task(self._loop) is None:
            context.run(callback, self)
        else:
            self._loop.call_soon(callback, self, context=context)

    # What tasks ask for.

    def __await__(self) -> Generator[Any, None, bool]:
        if not self.is_over:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, callback: Callable[["PromptWait"], object], *, context: Context) -> None:
        assert self._callback is None, "one task waits for it"
        self._callback, self._context = callback, context
        if self.is_over:
            self._tell(False)

    def cancel(self, msg: object = None) -> bool:
        if self.is_over:
            return False
        self.is_over = self._is_cancelled = True
        self._tell(False)
        return True

    def result(self) -> bool:
        if self._is_cancelled:
            raise asyncio.CancelledError
        return self._is_woken
