"""Requests whose answers have not come, or that have none and are not sent yet, and who is told when that changes."""

import asyncio
import logging
from collections import deque
from typing import Any

from ottla.client.connections_answers import copy_of
from ottla.client.connections_versions import Plan
from ottla.client.errors import OttlaError
from ottla.runtime.promise import Promise

logger = logging.getLogger(__name__)


class Prompt(Promise[Any]):
    """A promise with a future's names: who waits is told in the call that brings the answer, not in a later turn.

    What fails there must not harm the answers behind it.
    """

    __slots__ = ()

    def set_result(self, value: Any) -> None:
        try:
            self.resolve(value)
        except Exception:
            logger.exception("whoever waited for an answer failed when it came")

    def set_exception(self, error: BaseException) -> None:
        try:
            self.reject(error)
        except Exception:
            logger.exception("whoever waited for an answer failed when there was none")


class Waiting:
    """A request whose answer has not come. Its future may be done before: then nobody wants the answer any more."""

    __slots__ = ("correlation_id", "deadline", "future", "give_up_at", "plan")

    def __init__(
        self,
        correlation_id: int,
        plan: Plan,
        future: "asyncio.Future[Any] | Prompt",
        deadline: float,
        give_up_at: float,
    ) -> None:
        self.correlation_id = correlation_id
        self.plan = plan
        self.future = future
        self.deadline = deadline
        self.give_up_at = give_up_at


class Tellings:
    """Requests that have no answer and are not sent yet, in their order.

    The future of each is done when its last byte was handed to the system, which is the most that is ever known of it.
    Bytes are counted from any beginning, and only while there are such requests.
    """

    __slots__ = ("_sent_bytes", "_unsent")

    def __init__(self) -> None:
        self._unsent: deque[tuple[int, float, asyncio.Future[None]]] = deque()
        self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self._unsent)

    @property
    def were_there(self) -> bool:
        """Whether there ever was one."""
        return bool(self._unsent) or self._sent_bytes > 0

    @property
    def deadline(self) -> float:
        """When the first of them has to be sent."""
        return self._unsent[0][1] if self._unsent else float("inf")

    def add(self, future: "asyncio.Future[None]", deadline: float, unsent_bytes: int) -> None:
        """One whose last byte is the last of `unsent_bytes`."""
        self._unsent.append((self._sent_bytes + unsent_bytes, deadline, future))

    def sent(self, size_bytes: int) -> None:
        self._sent_bytes += size_bytes
        while self._unsent and self._unsent[0][0] <= self._sent_bytes:
            future = self._unsent.popleft()[2]
            if not future.done():
                future.set_result(None)

    def end(self, error: OttlaError) -> None:
        while self._unsent:
            future = self._unsent.popleft()[2]
            if not future.done():
                future.set_exception(copy_of(error))
