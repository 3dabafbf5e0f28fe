"""Long work that keeps something between its steps, behind one interface: beside the loop, or in another process."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from ottla.runtime.disk import Disk
from ottla.runtime.executor import Executor

Result = TypeVar("Result")


class WorkbenchLost(Exception):
    """The bench ended before the work on it was done, with all that it held: somebody killed it, or closed it."""


class Workbench(Protocol):
    """Holds one object at a time and does one call on it after the other, never in the loop's thread.

    What goes in and comes out may be sent to another process: plain values, and functions that have a name.
    """

    async def begin(self, make: Callable[..., object], /, *args: object) -> None:
        """Put `make(disk, *args)` on the bench, in place of what was there."""
        ...

    async def call(self, work: Callable[..., Result], /, *args: object) -> Result:
        """`work(what_is_there, *args)`; exceptions pass through. WorkbenchLost when nothing is there any more."""
        ...

    async def clear(self) -> None:
        """Give back what is held; there may be nothing more to do for a while."""
        ...


class LocalWorkbench:
    """In this process: the disk may be any, also one in memory."""

    def __init__(self, executor: Executor, disk: Disk) -> None:
        self._executor = executor
        self._disk = disk
        self._subject: object = None

    async def begin(self, make: Callable[..., object], /, *args: object) -> None:
        self._subject = None
        self._subject = await self._executor.run(make, self._disk, *args)

    async def call(self, work: Callable[..., Result], /, *args: object) -> Result:
        return await self._executor.run(work, self._subject, *args)

    async def clear(self) -> None:
        self._subject = None
