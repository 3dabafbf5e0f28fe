"""Which broker coordinates a group or a transactional id: asked for once, then remembered until it turns out wrong.

Keys that are wanted at the same time are asked for in one request, where the brokers have that (FindCoordinator from
version 4). While there is no coordinator yet, because the internal topic is being created or loaded, it is asked again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ottla.client.errors import BrokerError, BrokerUnavailable, OttlaError, UnsupportedByBroker, error_of
from ottla.client.network import COORDINATOR_LINK, CoordinatorKind
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

_NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)

Wanted = tuple[CoordinatorKind, str]
Found = tuple[str, int, str, int, int, str | None]
"""Key, node id, host, port, error code, error message."""


class AskAny(Protocol):
    def __call__(
        self, request: FindCoordinatorRequest, answer: type[FindCoordinatorResponse], /
    ) -> Awaitable[FindCoordinatorResponse]: ...


def link_of(kind: CoordinatorKind, node_id: int) -> int:
    return COORDINATOR_LINK - node_id if kind is CoordinatorKind.GROUP else node_id


class Coordinators:
    """`located` is called with the node id, host and port of each coordinator that was found."""

    def __init__(
        self,
        ask_any: AskAny,
        backoff: Callable[[int], Awaitable[None]],
        located: Callable[[int, str, int], None],
    ) -> None:
        self._ask_any = ask_any
        self._backoff = backoff
        self._located = located
        self._known: dict[Wanted, int] = {}
        self._wanted: dict[Wanted, asyncio.Future[int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._last_error: OttlaError | None = None

    async def find(self, kind: CoordinatorKind, key: str, timeout_seconds: float) -> int:
        known = self._known.get((kind, key))
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        future = self._wanted.get((kind, key))
        if future is None:
            future = self._wanted[kind, key] = loop.create_future()
            future.add_done_callback(_retrieve)
        if self._task is None:
            self._task = loop.create_task(self._look_up())
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.shield(future)
        except TimeoutError:
            reason = f": {self._last_error}" if self._last_error is not None else ""
            raise BrokerUnavailable(
                f"no coordinator of {kind.name.lower()} {key!r} was found within {timeout_seconds:.1f} s{reason}"
            ) from None

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        self._known.pop((kind, key), None)

    def close(self, error: OttlaError) -> None:
        if self._task is not None:
            self._task.cancel()
        self._give_up(error)

    def _give_up(self, error: OttlaError) -> None:
        wanted, self._wanted = self._wanted, {}
        for future in wanted.values():
            if not future.done():
                future.set_exception(type(error)(*error.args) if not isinstance(error, BrokerError) else error)

    async def _look_up(self) -> None:
        attempt = 0
        try:
            while self._wanted:
                progress = await self._look_up_once()
                attempt = 0 if progress else attempt + 1
                if self._wanted and attempt:
                    await self._backoff(attempt - 1)
        except OttlaError as error:
            self._give_up(error)
        finally:
            self._task = None

    async def _look_up_once(self) -> bool:
        """Ask for everything that is wanted of one kind; answers whether something came to an end."""
        kind = next(iter(self._wanted))[0]
        keys = [key for wanted_kind, key in self._wanted if wanted_kind is kind]
        try:
            found = await self._ask(kind, keys)
        except BrokerUnavailable as error:
            self._last_error = error
            return False
        progress = False
        for key, node_id, host, port, code, message in found:
            if code in _NOT_YET:
                self._last_error = error_of(code, message or "")
                continue
            future = self._wanted.pop((kind, key), None)
            if future is None or future.done():
                continue
            progress = True
            if code:
                future.set_exception(error_of(code, message or ""))
                continue
            self._located(node_id, host, port)
            link = self._known[kind, key] = link_of(kind, node_id)
            future.set_result(link)
        return progress

    async def _ask(self, kind: CoordinatorKind, keys: Sequence[str]) -> list[Found]:
        request = FindCoordinatorRequest(key_type=int(kind), coordinator_keys=list(keys))
        try:
            answer = await self._ask_any(request, FindCoordinatorResponse)
        except UnsupportedByBroker:
            return [await self._ask_old(kind, key) for key in keys]
        return [
            (one.key, one.node_id, one.host, one.port, one.error_code, one.error_message) for one in answer.coordinators
        ]

    async def _ask_old(self, kind: CoordinatorKind, key: str) -> Found:
        one = await self._ask_any(FindCoordinatorRequest(key_type=int(kind), key=key), FindCoordinatorResponse)
        return key, one.node_id, one.host, one.port, one.error_code, one.error_message


def _retrieve(future: "asyncio.Future[int]") -> None:
    """Whoever wanted it may have given up."""
    if not future.cancelled():
        future.exception()
