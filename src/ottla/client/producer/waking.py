"""How a turn of the producer's loop comes about, from whatever thread."""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol

from ottla.client.producer._twin import twin
from ottla.client.producer.sender import Sender

_FEW_BATCHES = 4


class Lender(Protocol):
    """A loop that others may visit, and that leaves answers to its visitors where it may."""

    def visit(self, work: Callable[[], None], /) -> bool:
        """Do it in this thread, as if in the loop, unless that is busy: False then."""

    def catch_up(self) -> None:
        """In a visit: what the loop has left to its visitors."""


class Waking:
    """`lender`, where there is one, has a turn done in the thread of whoever sends.

    `is_turning` is set while the loop does a turn, or may not: what is put in meanwhile waits for a later one.
    """

    def __init__(self, appender: "twin.Appender", sender: Sender, linger_ms: int, turn: Callable[[], None]) -> None:
        self._appender = appender
        self._sender = sender
        self._lingers = linger_ms > 0
        self._turn = turn
        self.is_turning = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lender: Lender | None = None

    def wake(self) -> None:
        """A turn, soon."""
        loop = self.loop
        if loop is None or loop.is_closed():
            return
        if threading.get_ident() == self._appender.owner_thread:
            loop.call_soon(self._turn)
        else:
            loop.call_soon_threadsafe(self._turn)

    def record_came(self) -> None:
        """The first record of a batch, or a batch that is full: a turn, now where that may be."""
        if not self._did_turn():
            self.wake()

    def _did_turn(self) -> bool:
        """Only where little is on its way. Where there is more, records come faster than they leave one by one."""
        loop = self.loop
        if self._lingers or loop is None or not self._sender.is_calm:
            return False
        if threading.get_ident() != self._appender.owner_thread:
            return self.lender is not None and self.lender.visit(self._take_turn)
        if self.is_turning or asyncio.current_task(loop) is None:
            # A callback of the loop may be the producer's own, in the middle of something.
            return False
        self._turn()
        return True

    def without_turns(self, work: Callable[..., object], *arguments: object) -> None:
        """Whatever is put in while it works is sent in a later turn."""
        was_turning, self.is_turning = self.is_turning, True
        try:
            work(*arguments)
        finally:
            self.is_turning = was_turning

    def _take_turn(self) -> None:
        """In the thread of whoever sends, which is the loop's for that time, but calls nobody back."""
        appender, loop, lender = self._appender, self.loop, self.lender
        assert loop is not None
        assert lender is not None
        thread = appender.owner_thread
        appender.own()
        appender.later = loop.call_soon
        try:
            self._turn()
            # What has come for others is taken in when this thread's own has left.
            lender.catch_up()
        finally:
            appender.later = None
            appender.owner_thread = thread

    def is_unobserved(self) -> bool:
        """Whether nobody would notice that answers are seen some milliseconds later: few records are on their way, and
        nobody waits for them, or for anything that depends on them."""
        if not self._sender.is_calm or self._sender.hurries:
            return False
        batches = list(self._appender.incomplete)
        if len(batches) > _FEW_BATCHES:
            return False
        for batch in batches:  # noqa: SIM110 - a generator costs more than the question
            if batch.deliveries or batch.listeners:
                return False
        return True
