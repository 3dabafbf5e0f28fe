"""An executor whose work a test holds up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")


class HeldExecutor:
    """Does the work at once, except for calls of one name, which wait until they are released one by one: before the
    work is done, or, with `after`, when it is done and nobody knows yet."""

    def __init__(self, name: str, *, after: bool = False) -> None:
        self.name = name
        self.after = after
        self.held: list[asyncio.Event] = []

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        return asyncio.ensure_future(self._run(work, args))

    async def _run(self, work: Callable[..., Result], args: tuple[object, ...]) -> Result:
        if work.__name__ != self.name:
            return work(*args)
        event = asyncio.Event()
        self.held.append(event)
        if self.after:
            result = work(*args)
            await event.wait()
            return result
        await event.wait()
        return work(*args)
