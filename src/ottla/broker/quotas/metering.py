"""Requests, measured around their handlers.

The answer of a client that is above a quota says how long it has to wait (KIP-219) and leaves at once; what makes the
client wait is that its connection is not read for that time. Of several quotas the longest wait counts.

| request         | counted                                                                                       |
|-----------------|-----------------------------------------------------------------------------------------------|
| Produce         | the bytes of the request, and its time unless no answer is wanted (acks=0)                    |
| Fetch           | the bytes of the answer, and its time; a client that has to wait gets an empty answer instead |
| Fetch of brokers| nothing                                                                                       |
| all others      | their time; what they change at the controller is counted by their handlers                   |

The time of a request is the time in which it holds the loop, which is all the processor time there is: 100 percent are
one processor.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from typing import Any

from ottla.broker.dispatch import Answer, Handler, RequestContext
from ottla.broker.quotas.broker_quotas import ANONYMOUS, BrokerQuotas
from ottla.broker.quotas.clients import ClientQuota
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.produce import ProduceRequest
from ottla.runtime.promise import Promise

PERCENT = 100.0
ENVELOPE_BYTES = 4
"""What Kafka adds to the body of a fetch's answer: its length prefix, and not its header."""


class RequestMeter:
    """What one request uses."""

    __slots__ = ("_began", "_busy_seconds", "_quotas", "client_id", "is_charged", "request_bytes")

    def __init__(self, quotas: BrokerQuotas, client_id: str | None, request_bytes: int) -> None:
        self._quotas = quotas
        self._began: float | None = None
        self._busy_seconds = 0.0
        self.client_id = client_id or ""
        self.request_bytes = request_bytes
        self.is_charged = False

    def begin(self) -> None:
        self._began = self._quotas.seconds()

    def pause(self) -> None:
        if self._began is not None:
            self._busy_seconds += self._quotas.seconds() - self._began
            self._began = None

    def _percent(self) -> float:
        """Of one second; the time that runs counts up to now."""
        running = 0.0 if self._began is None else self._quotas.seconds() - self._began
        return (self._busy_seconds + running) * PERCENT

    def charge_time(self) -> int:
        quotas = self._quotas
        return quotas.request.record(ANONYMOUS, self.client_id, self._percent(), quotas.now_ms())

    def charge_produce(self) -> int:
        quotas = self._quotas
        return quotas.produce.record(ANONYMOUS, self.client_id, self.request_bytes, quotas.now_ms())

    def most_to_fetch(self) -> float:
        """More bytes than this in one answer would have to wait for ever."""
        return self._quotas.fetch.most_at_once(ANONYMOUS, self.client_id, self._quotas.now_ms())

    def charge_fetch(self, response: Response, api_version: int) -> int:
        """Milliseconds to wait before the answer may be asked for again; it is charged only if that is none."""
        quotas, client_id = self._quotas, self.client_id
        self.is_charged = True
        now_ms = quotas.now_ms()
        time_wait_ms = quotas.request.record(ANONYMOUS, client_id, self._percent(), now_ms)
        wait_ms = 0
        if quotas.fetch.limits:
            size_bytes = ENVELOPE_BYTES + sum(map(len, response.encode_parts(api_version, b"")))
            wait_ms = quotas.fetch.record(ANONYMOUS, client_id, size_bytes, now_ms)
            if max(wait_ms, time_wait_ms) > 0:
                quotas.fetch.unrecord(ANONYMOUS, client_id, size_bytes, now_ms)
        quota = quotas.fetch if wait_ms > time_wait_ms else quotas.request
        self.throttled(quota, max(wait_ms, time_wait_ms))
        return max(wait_ms, time_wait_ms)

    def throttled(self, quota: ClientQuota, wait_ms: int) -> None:
        if wait_ms > 0:
            quota.throttled(ANONYMOUS, self.client_id, wait_ms, self._quotas.now_ms())


class MeteredContext(RequestContext):
    """The context of a request that is measured."""

    __slots__ = ("meter",)

    def __init__(self, context: RequestContext, meter: RequestMeter) -> None:
        super().__init__(context.connection, context.api_version, context.correlation_id, context.client_id)
        self.meter: RequestMeter = meter


class Metering:
    """Wraps handlers: what they answer is charged, marked with the time to wait, and followed by silence."""

    def __init__(self, quotas: BrokerQuotas) -> None:
        self._quotas = quotas
        self._metered: dict[int, tuple[Handler, Handler]] = {}

    def metered(self, handler: Handler, context: RequestContext, request_bytes: int) -> tuple[Handler, MeteredContext]:
        """A handler that measures in place of the one that is given, and the context to call it with."""
        known = self._metered.get(handler.api_key)
        if known is None or known[0] is not handler:
            known = self._metered[handler.api_key] = (handler, self._wrapped(handler))
        return known[1], MeteredContext(context, RequestMeter(self._quotas, context.client_id, request_bytes))

    def _wrapped(self, handler: Handler) -> Handler:
        settle = {ApiKey.PRODUCE: self._settle_produce, ApiKey.FETCH: self._settle_fetch}.get(
            handler.api_key, self._settle
        )
        wrap = _measured_coroutine if handler.is_coroutine else _measured
        return replace(handler, function=wrap(handler, settle))

    def _settle_produce(self, context: MeteredContext, request: Request, response: Response | None) -> None:
        assert isinstance(request, ProduceRequest)
        meter, quotas = context.meter, self._quotas
        wait_ms = meter.charge_produce()
        time_wait_ms = meter.charge_time() if request.acks else 0
        meter.throttled(quotas.produce if wait_ms > time_wait_ms else quotas.request, max(wait_ms, time_wait_ms))
        _throttle(context, response, max(wait_ms, time_wait_ms))

    def _settle_fetch(self, context: MeteredContext, request: Request, response: Response | None) -> None:
        """The handler has charged it, unless there was nothing to read or a broker reads."""
        if context.meter.is_charged and response is not None:
            _throttle(context, response, getattr(response, "throttle_time_ms", 0))
        else:
            self._settle(context, request, response)

    def _settle(self, context: MeteredContext, request: Request, response: Response | None) -> None:
        """What a handler says the client has to wait for is the controller's quota."""
        meter, quotas = context.meter, self._quotas
        time_wait_ms = meter.charge_time()
        wait_ms = getattr(response, "throttle_time_ms", 0)
        meter.throttled(quotas.mutation if wait_ms > time_wait_ms else quotas.request, max(wait_ms, time_wait_ms))
        _throttle(context, response, max(wait_ms, time_wait_ms))


Settle = Callable[[MeteredContext, Request, Response | None], None]


def _throttle(context: MeteredContext, response: Response | None, wait_ms: int) -> None:
    if wait_ms > 0:
        if response is not None and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = wait_ms
        context.connection.mute(wait_ms / 1000)


def _measured(handler: Handler, settle: Settle) -> Callable[[Any, Any, Any], Answer]:
    function = handler.function

    def measured(broker: Any, context: MeteredContext, request: Any) -> Answer:
        context.meter.begin()
        answer = function(broker, context, request)
        if answer is None or isinstance(answer, Response):
            settle(context, request, answer)
            return answer
        context.meter.pause()
        assert isinstance(answer, asyncio.Future | Promise)
        return _settled_later(answer, lambda response: settle(context, request, response))

    return measured


def _settled_later(
    answer: asyncio.Future[Any] | Promise[Any], settle: Callable[[Response | None], None]
) -> Promise[Response | None]:
    settled: Promise[Response | None] = Promise()

    def answered(source: asyncio.Future[Any] | Promise[Any]) -> None:
        if source.cancelled():
            settled.cancel()
            return
        error = source.exception()
        if error is not None:
            settled.reject(error)
            return
        try:
            settle(source.result())
        except Exception as failure:
            settled.reject(failure)
        else:
            settled.resolve(source.result())

    def abandoned(promise: Promise[Response | None]) -> None:
        if promise.cancelled():
            answer.cancel()

    answer.add_done_callback(answered)
    settled.add_done_callback(abandoned)
    return settled


def _measured_coroutine(handler: Handler, settle: Settle) -> Callable[[Any, Any, Any], Answer]:
    function = handler.function

    async def measured(broker: Any, context: MeteredContext, request: Any) -> Response:
        answer = function(broker, context, request)
        assert isinstance(answer, Coroutine)
        response: Response = await _Stopwatch(answer, context.meter)
        settle(context, request, response)
        return response

    return measured


class _Stopwatch:
    """Awaits a coroutine and measures its steps, but not the waits between them."""

    def __init__(self, work: Coroutine[Any, Any, Response], meter: RequestMeter) -> None:
        self._work = work
        self._meter = meter

    def __await__(self) -> Generator[Any, Any, Response]:
        work, meter = self._work, self._meter
        step: Callable[[Any], Any] = work.send
        given: Any = None
        while True:
            meter.begin()
            try:
                waited_for = step(given)
            except StopIteration as end:
                response: Response = end.value
                return response
            finally:
                meter.pause()
            try:
                given = yield waited_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:
                step, given = work.throw, error
            else:
                step = work.send
