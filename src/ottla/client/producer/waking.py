"""How a turn of the producer's loop comes about, from whatever thread."""

import asyncio
import threading
from collections.abc import Callable

from ottla.client.producer._twin import twin
from ottla.client.producer.sender import Sender


class Waking:
    """`visit`, where there is one, does a turn in the thread of whoever sends, unless the loop is busy: False then."""

    def __init__(self, appender: "twin.Appender", sender: Sender, linger_ms: int, turn: Callable[[], None]) -> None:
        self._appender = appender
        self._sender = sender
        self._lingers = linger_ms > 0
        self._turn = turn
        self.loop: asyncio.AbstractEventLoop | None = None
        self.visit: Callable[[Callable[[], None]], bool] | None = None

    def wake(self) -> None:
        """A turn, now or soon."""
        loop = self.loop
        if loop is None or loop.is_closed():
            return
        if threading.get_ident() == self._appender.owner_thread:
            loop.call_soon(self._turn)
        elif not self._did_visit():
            loop.call_soon_threadsafe(self._turn)

    def _did_visit(self) -> bool:
        """Only where nothing is on its way: an answer would bring a turn about, for all records until then."""
        if self.visit is None or self._lingers or self._sender.in_flight_requests:
            return False
        return self.visit(self._take_turn)

    def _take_turn(self) -> None:
        """In the thread of whoever sends, which is the loop's for that time."""
        appender = self._appender
        thread = appender.owner_thread
        appender.own()
        try:
            self._turn()
        finally:
            appender.owner_thread = thread
