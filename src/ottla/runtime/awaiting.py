"""Waiting for a promise in a coroutine, where a turn of the loop more does not matter."""

import asyncio
from typing import TypeVar

from ottla.runtime.promise import Promise

Value = TypeVar("Value")


async def kept(promise: Promise[Value]) -> Value:
    """The value of a promise, or the error that it came to."""
    if not promise.done():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake(promise: Promise[Value]) -> None:
            if not future.done():
                future.set_result(None)

        promise.add_done_callback(wake)
        await future
    return promise.result()
