"""Faults on demand: what a broker of a test does wrong, for how many requests.

Faults of one API form a script: each request meets the first one that is not used up, and one only.

    broker.faults.error("PRODUCE", ErrorCode.NOT_ENOUGH_REPLICAS, times=3)
    broker.faults.disconnect("PRODUCE", when="after")

Here three requests are refused, the fourth takes effect and is never answered, and the fifth is served. A fault puts
another handler in the place of the real one (`Dispatcher.interceptor`); what waits inside of one ends at once when the
broker ends.

The script is written by the test's threads and read by the broker's: all of it is behind one lock.
"""

import asyncio
import difflib
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ottla.broker.connection import CloseConnection
from ottla.broker.dispatch import Answer, Handler, RequestContext, registered_handlers
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.runtime.promise import Promise
from ottla.testing.faulty_disk import FaultyDisk
from ottla.testing.refusals import refuse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

OWN_CLIENT_ID = "ottla-testing"
"""Requests of this client are the test broker's own: they meet no faults and are not counted."""

Api = str | ApiKey
Code = str | ErrorCode
Stand = Callable[[Handler], Handler]


@dataclass(slots=True)
class _Fault:
    """`left` is None for a fault that stays until it is cleared."""

    stand_in: Stand
    left: int | None


class Faults:
    """See the module. `times` is how many requests meet a fault; None means all of them, until `clear`."""

    def __init__(self, disk: FaultyDisk) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._scripts: dict[ApiKey, deque[_Fault]] = {}
        self._requests: Counter[ApiKey] = Counter()
        self._held: set[asyncio.Future[None]] = set()

    # What tests call

    def error(self, api: Api, code: Code, times: int | None = 1) -> None:
        """Refuse requests of an API with an error code, in all the parts of the answer that carry one."""
        wanted = _error_code(code)
        if wanted is ErrorCode.NONE:
            raise ValueError("ErrorCode.NONE is no error: clear() lets requests through again")

        def refused(broker: "Broker", context: RequestContext, request: Request) -> Response:
            return refuse(broker, context, request, wanted)

        self._add(api, lambda handler: replace(handler, function=refused, is_coroutine=False), times)

    def delay(self, api: Api, seconds: float, times: int | None = 1) -> None:
        """Handle requests of an API at once, and answer that much later.

        As always, the later answers of the same connection wait for the earlier ones.
        """
        if seconds < 0:
            raise ValueError(f"a delay has 0 seconds or more, not {seconds}")

        async def hold() -> None:
            await self._hold(seconds)

        self._add(api, lambda handler: _stand_behind(handler, hold), times)

    def disconnect(self, api: Api, times: int | None = 1, *, when: Literal["before", "after"] = "before") -> None:
        """Close the connection instead of answering: before the request takes effect, or after it did."""
        if when not in ("before", "after"):
            raise ValueError(f'when must be "before" or "after", not {when!r}')

        def hang_up(*_: object) -> Answer:
            raise CloseConnection("a fault of the test")

        async def hang_up_later() -> None:
            hang_up()

        if when == "before":
            self._add(api, lambda handler: replace(handler, function=hang_up, is_coroutine=False), times)
        else:
            self._add(api, lambda handler: _stand_behind(handler, hang_up_later), times)

    def clear(self) -> None:
        """Forget everything that was scripted; the disk works again, too."""
        with self._lock:
            self._scripts.clear()
        self.disk_works_again()

    def pending(self, api: Api) -> int | None:
        """How many more requests of an API will meet a fault; None if all of them will."""
        key = _api_key(api)
        with self._lock:
            left = [fault.left for fault in self._scripts.get(key, ())]
        return None if None in left else sum(one for one in left if one is not None)

    def requests(self, api: Api) -> int:
        """How many requests of an API came so far, those that met a fault among them."""
        key = _api_key(api)
        with self._lock:
            return self._requests[key]

    def full_disk(self) -> None:
        """Refuse to append records (KAFKA_STORAGE_ERROR), until the disk works again."""
        self._disk.is_full = True

    def fsync_fails(self, times: int | None = 1) -> None:
        """Let syncs fail. As the kernel may have dropped what it could not write, a broker does not trust the
        directory any more: it answers KAFKA_STORAGE_ERROR until it is started again."""
        self._disk.fail_syncs(_checked(times))

    def disk_works_again(self) -> None:
        self._disk.is_full = False
        self._disk.fail_syncs(0)

    def _add(self, api: Api, stand_in: Stand, times: int | None) -> None:
        key = _api_key(api)
        fault = _Fault(stand_in, _checked(times))
        with self._lock:
            self._scripts.setdefault(key, deque()).append(fault)

    # What the broker calls, on its loop

    def intercept(self, handler: Handler, context: RequestContext, request: Request) -> Handler:
        """The handler, or what stands in for it this time."""
        if context.client_id == OWN_CLIENT_ID:
            return handler
        key = handler.api_key
        with self._lock:
            self._requests[key] += 1
            script = self._scripts.get(key)
            while script and script[0].left == 0:
                script.popleft()
            if not script:
                return handler
            fault = script[0]
            if fault.left is not None:
                fault.left -= 1
        return fault.stand_in(handler)

    async def _hold(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        held: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _let_go, held)
        self._held.add(held)
        try:
            await held
        finally:
            timer.cancel()
            self._held.discard(held)

    def release(self) -> None:
        """Let go of the answers that are held back: the broker ends."""
        for held in list(self._held):
            _let_go(held)


def _let_go(held: "asyncio.Future[None]") -> None:
    if not held.done():
        held.set_result(None)


def _stand_behind(handler: Handler, then: Callable[[], Any]) -> Handler:
    """The handler does its work; what it answers leaves once `then`, a coroutine function, is over.

    A plain handler is called at once, since its request is only there until it returns.
    """

    async def coroutine_handler(broker: "Broker", context: RequestContext, request: Request) -> Response:
        work: Any = handler.function(broker, context, request)
        answer: Response = await work
        await then()
        return answer

    async def finish(answer: Answer) -> Answer:
        if isinstance(answer, asyncio.Future | Promise):
            answer = await _result(answer)
        await then()
        return answer

    def plain_handler(broker: "Broker", context: RequestContext, request: Request) -> Answer:
        return asyncio.ensure_future(finish(handler.function(broker, context, request)))

    return replace(handler, function=coroutine_handler if handler.is_coroutine else plain_handler)


async def _result(answer: "asyncio.Future[Any] | Promise[Any]") -> Any:
    """What a handler promised. When the client is gone, the one who promised is told."""
    if isinstance(answer, asyncio.Future):
        return await answer
    kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    answer.add_done_callback(lambda _: _let_go(kept))
    try:
        await kept
    except asyncio.CancelledError:
        answer.cancel()
        raise
    return answer.result()


# Names as they are given


def _checked(times: int | None) -> int | None:
    if times is not None and times < 1:
        raise ValueError(f"times must be 1 or more, or None for all requests, not {times}")
    return times


def _api_key(api: Api) -> ApiKey:
    """By Kafka's name, written as `CREATE_TOPICS` or as `CreateTopics`; only what this broker serves."""
    served = {handler.api_key.name: handler.api_key for handler in registered_handlers().values()}
    if isinstance(api, ApiKey):
        if api in served.values():
            return api
        raise ValueError(f"{api.name} is not served by this broker; these are: {', '.join(served)}")
    plain = {name.replace("_", ""): key for name, key in served.items()}
    wanted = api.replace("_", "").upper()
    if wanted not in plain:
        near = difflib.get_close_matches(wanted, plain, n=1)
        hint = f"did you mean {plain[near[0]].name}?" if near else f"these are: {', '.join(served)}"
        raise ValueError(f"{api} is not served by this broker; {hint}")
    return plain[wanted]


def _error_code(code: Code) -> ErrorCode:
    if isinstance(code, ErrorCode):
        return code
    try:
        return ErrorCode[code]
    except KeyError:
        near = difflib.get_close_matches(code, ErrorCode.__members__, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{code} is no error code of Kafka{hint}") from None
