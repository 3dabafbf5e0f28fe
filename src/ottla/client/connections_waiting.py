"""Requests whose answers have not come, and who is told when they do."""

import asyncio
import logging
from typing import Any

from ottla.client.connections_versions import Plan
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
