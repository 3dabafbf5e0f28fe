"""A disk whose machine loses its power at a chosen call."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.testing import MemoryDisk

MUTATING = ("append", "truncate", "sync", "rename", "delete", "sync_directory", "write_atomically", "open", "write_at")


class PowerCut(BaseException):
    """Not an error of the disk: nobody gets to handle it."""


class FragileDisk(MemoryDisk):
    """Stops the machine at the n-th call that changes something; what comes later changes nothing either.

    `is_off` says whether that has happened.
    """

    mutating: tuple[str, ...] = MUTATING
    calls_left: int | None = None
    is_off = False

    def check_fault(self, operation: str, path: str) -> None:
        if self.calls_left is not None and operation in self.mutating:
            if self.calls_left == 0:
                self.is_off = True
                raise PowerCut
            self.calls_left -= 1
        super().check_fault(operation, path)

    @contextmanager
    def cut_after(self, calls: int) -> Iterator[None]:
        """Let the power go after so many calls. There is none until whoever did this has crashed the disk."""
        self.calls_left = calls
        try:
            yield
        except PowerCut:
            return
        finally:
            self.calls_left = 0

    def power_on(self) -> None:
        self.calls_left = None
        self.is_off = False


def end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Nothing that was under way when the power went may go on in the next life of the machine."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
