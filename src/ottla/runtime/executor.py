"""Work that must not run on the loop, behind one interface that the simulation replaces."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Executor(Protocol):
    """Runs blocking calls (fsync, rename, delete, cold reads) beside the loop.

    The work gets immutable inputs and hands back a result: state belongs to the loop's thread alone. Only calls
    that release the GIL belong here; a busy Python thread would slow down every connection.
    """

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        """Start `work(*args)` and give back something to await; exceptions pass through."""
        ...
