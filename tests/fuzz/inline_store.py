"""The embedded store without its thread: each piece of work is done on the loop, one turn after it was handed in."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ottla.coordination.database import Database
from ottla.coordination.embedded import EmbeddedStore, _Engine, _Job
from ottla.coordination.store import Event

Result = TypeVar("Result")


class InlineEngine(_Engine):
    """Its tree is in memory, and stays when the last session ends: a broker can be started again on it."""

    def __init__(self) -> None:
        super().__init__(":memory:", is_durable=False)
        self._database = Database(":memory:", is_durable=False)

    async def submit(self, work: Callable[[Database, list[Event]], Result]) -> Result:
        await asyncio.sleep(0)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        job = _Job(work, future)
        self._commit(self._database, [job])
        self._deliver([job])
        return await future

    async def close(self) -> None:
        """Nothing: see the class."""

    def discard(self) -> None:
        self._database.close()

    async def open_session(self, path: str) -> EmbeddedStore:
        return EmbeddedStore(self, await self.submit(lambda database, events: database.new_session()))
