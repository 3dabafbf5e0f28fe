"""Waiting for records: threads that block, coroutines of any loop, and callbacks."""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.client.errors import Unfinished
from ottla.client.producer._twin import twin

if TYPE_CHECKING:
    from ottla.client.producer.failures import FailedRecords

logger = logging.getLogger(__name__)

Delivery = twin.Delivery
Listener = Callable[[Delivery], object]


class WaitingRecords(twin.RecordBuffer):
    """Records, or their places, that somebody waits for. `moved` tells where they went, one by one."""

    __slots__ = ("error", "listeners", "owner", "unseen")

    def __init__(self, owner: "twin.Appender") -> None:
        super().__init__()
        self.owner = owner
        self.error: Exception | None = None
        self.listeners: list[tuple[Delivery, Listener]] = []
        # Of records that failed: which of them nobody has looked at.
        self.unseen: FailedRecords | None = None

    def error_at(self, index: int) -> Exception | None:
        return self.error

    def look_at(self, index: int) -> Exception | None:
        """The same for a caller who asks: from then on, the record is looked at."""
        if self.unseen is not None:
            self.unseen.look_at(index)
        return self.error_at(index)

    def add_listener(self, delivery: Delivery, callback: Listener) -> None:
        """Call it in the loop's thread when the record is done, at once if it is. For any thread."""
        pair = (delivery, callback)
        self.listeners.append(pair)
        # In this order: a loop that naps has looked whether anybody waits, or is woken now.
        if self.owner.rouse is not None:
            self.owner.rouse()
        if self.moved is not None:
            self.tell_listeners()
        elif self.is_done:
            # It ended in between. Others who wait are the loop's to tell.
            try:
                self.listeners.remove(pair)
            except ValueError:
                return
            call(callback, delivery)

    def tell_listeners(self) -> None:
        kept = []
        while self.listeners:
            try:
                delivery, callback = self.listeners.pop(0)
            except IndexError:
                break
            home = delivery.batch
            if home is not self:
                home.add_listener(delivery, callback)
            elif self.is_done:
                call(callback, delivery)
            else:
                kept.append((delivery, callback))
        self.listeners += kept

    def wait(self, delivery: Delivery, timeout: float | None) -> None:
        """Block this thread until the record is done."""
        if threading.get_ident() == self.owner.owner_thread:
            raise Unfinished("this is the thread of the producer's event loop: await the delivery")
        is_over = threading.Lock()
        is_over.acquire()

        def release(_: Delivery) -> None:
            is_over.release()

        self.add_listener(delivery, release)
        if not is_over.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            _forget(delivery, release)
            raise Unfinished(f"not done within {timeout} s: the record is still on its way, wait again")

    def future(self, delivery: Delivery) -> Generator[Any, None, None]:
        """For `yield from`, in whatever loop runs: waits until the record is done."""
        loop = asyncio.get_running_loop()
        thread = threading.get_ident()
        future: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def wake(_: Delivery) -> None:
            if threading.get_ident() == thread:
                resolve()
            elif not loop.is_closed():
                loop.call_soon_threadsafe(resolve)

        self.add_listener(delivery, wake)
        try:
            yield from future
        except BaseException:
            _forget(delivery, wake)
            raise


def _forget(delivery: Delivery, listener: Listener) -> None:
    """Who waited has given up: what becomes of the record is not looked at any more."""
    with suppress(ValueError):
        delivery.batch.listeners.remove((delivery, listener))


def call(callback: Callable[..., object], *arguments: object, told: str = "a delivery callback failed") -> None:
    """Call what a user gave; what it raises is told in the log, and harms nobody else. So is `sys.exit()`, which could
    end no more than the loop, on which others wait."""
    try:
        callback(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        logger.exception(told)
