"""An answer that comes later.

A future tells those who wait in a later turn of the event loop. An answer passes through three hands (handler,
dispatcher, connection), and each turn costs a look at all sockets, so a promise tells them at once, in the call that
keeps it. It has the part of a future's face that a connection uses.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Promise(Generic[Value]):
    """Kept once, by a value, an error or a cancellation; `resolve` and `reject` after that do nothing."""

    __slots__ = ("_callbacks", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[Promise[Value]], None]] = []
        self._done = False
        self._error: BaseException | None = None
        self._value: Value | None = None

    def resolve(self, value: Value) -> None:
        if not self._done:
            self._value = value
            self._end()

    def reject(self, error: BaseException) -> None:
        if not self._done:
            self._error = error
            self._end()

    def cancel(self) -> bool:
        if self._done:
            return False
        self._error = asyncio.CancelledError()
        self._end()
        return True

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return isinstance(self._error, asyncio.CancelledError)

    def exception(self) -> BaseException | None:
        if isinstance(self._error, asyncio.CancelledError):
            raise self._error
        return self._error

    def result(self) -> Value:
        if not self._done:
            raise asyncio.InvalidStateError("the answer is not there yet")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # a promise that is kept without an error has its value

    def add_done_callback(self, callback: Callable[["Promise[Value]"], None]) -> None:
        """Call it with this promise when it is kept: in that very call, or now if that was before."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def _end(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def rejected(error: BaseException) -> Promise[Value]:
    """One that came to an error already."""
    promise: Promise[Value] = Promise()
    promise.reject(error)
    return promise
