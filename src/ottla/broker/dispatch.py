"""From a frame to a handler and back.

A handler is a function of one API, registered with `serves` in its own file under `broker/api`; what
ApiVersions answers is derived from the handlers that exist.

    @serves(MetadataRequest)
    async def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse: ...

A plain function answers at once, or gives back a future or a promise of its answer when it has to wait; it runs to
its end before the next frame is looked at, so requests of one connection take effect in order. A coroutine function
starts at once too, and goes on while later requests are handled. `None` means that the client expects no answer
(Produce with acks=0).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.connection import CloseConnection, Connection, Reply
from ottla.broker.outbox import Parts
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.framing import decode_client_id, decode_head, encode_response
from ottla.protocol.message import Request, Response
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.quotas.metering import Metering, RequestMeter

logger = logging.getLogger(__name__)

NEVER = 2**15


class RequestContext:
    """Who asks, and how: what a handler may want to know beside the request itself.

    `meter` is there when what the client uses is measured (`quotas.metering`).
    """

    __slots__ = ("api_version", "client_id", "connection", "correlation_id")

    meter: "RequestMeter | None" = None

    def __init__(self, connection: Connection, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.connection = connection
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    @property
    def listener(self) -> str:
        return self.connection.listener


Answer = Response | asyncio.Future[Any] | Promise[Any] | Coroutine[Any, Any, Response] | None
Later = asyncio.Future[Response | None] | Promise[Response | None]
HandlerFunction = Callable[["Broker", RequestContext, Any], Answer]
RequestType = TypeVar("RequestType", bound=Request)


@dataclass(frozen=True, slots=True)
class Handler:
    """One API: its request, the versions answered, the lowest version advertised, and the function.

    `flexible_since` is the first version with tags in the header of the request.
    """

    request: type[Request]
    min_version: int
    max_version: int
    advertised_min_version: int
    flexible_since: int
    function: HandlerFunction
    is_coroutine: bool
    abandon_on_close: bool

    @property
    def api_key(self) -> ApiKey:
        return self.request.API_KEY


Interceptor = Callable[[Handler, RequestContext, Request], Handler]
"""Chooses who answers a request: the handler it is given, or another in its place. Tests script faults with it."""

_registered: dict[int, Handler] = {}


def serves(
    request: type[RequestType],
    *,
    advertised_min_version: int | None = None,
    abandon_on_close: bool = False,
) -> Callable[[Callable[["Broker", RequestContext, RequestType], Any]], Callable[..., Any]]:
    """Register the handler of an API for all versions that its messages declare.

    `abandon_on_close` is for answers that only wait (a long poll): they are given up when the client is gone.
    What changes something goes on to its end.
    """

    def register(function: Callable[["Broker", RequestContext, RequestType], Any]) -> Callable[..., Any]:
        assert request.API_KEY not in _registered, f"two handlers for {request.API_KEY.name}"
        flexible_since = NEVER if request.FLEXIBLE_SINCE is None else request.FLEXIBLE_SINCE
        _registered[request.API_KEY] = Handler(
            request,
            request.MIN_VERSION,
            request.MAX_VERSION,
            request.MIN_VERSION if advertised_min_version is None else advertised_min_version,
            flexible_since,
            function,
            iscoroutinefunction(function),
            abandon_on_close,
        )
        return function

    return register


def registered_handlers() -> dict[int, Handler]:
    """All handlers, in the order of their API keys."""
    return dict(sorted(_registered.items()))


class Dispatcher:
    """Decodes a request, calls its handler, encodes the answer."""

    def __init__(self, broker: "Broker", handlers: Mapping[int, Handler]) -> None:
        self._broker = broker
        self._handlers = dict(handlers)
        self._tasks: set[asyncio.Task[Parts | None]] = set()
        self.interceptor: Interceptor | None = None
        self.metering: Metering | None = None

    @property
    def handlers(self) -> Iterable[Handler]:
        return self._handlers.values()

    def dispatch(self, connection: Connection, frame: memoryview) -> Reply:
        """The encoded answer, a future of it, or None where none is expected.

        What cannot be understood raises `CloseConnection`, as in Kafka: a client that sends it could not make
        sense of an answer either.
        """
        try:
            api_key, api_version, correlation_id, client_id_size = decode_head(frame)
        except MalformedMessage as error:
            raise CloseConnection(str(error)) from error
        handler = self._handlers.get(api_key)
        if handler is None:
            raise CloseConnection(f"API key {api_key} is not offered; see ApiVersions")
        if not handler.min_version <= api_version <= handler.max_version:
            return self._unsupported(handler, api_version, correlation_id)
        try:
            client_id, position = decode_client_id(frame, client_id_size, api_version >= handler.flexible_since)
            request = handler.request.decode(frame, api_version, position, exact=False)
        except MalformedMessage as error:
            raise CloseConnection(f"malformed {handler.api_key.name} request v{api_version}: {error}") from error
        context = RequestContext(connection, api_version, correlation_id, client_id)
        if self.interceptor is not None:
            handler = self.interceptor(handler, context, request)
        if self.metering is not None:
            handler, context = self.metering.metered(handler, context, len(frame))
        if handler.is_coroutine:
            return self._start(handler, context, request)
        answer = handler.function(self._broker, context, request)
        if answer is None:
            return None
        if isinstance(answer, Response):
            return encode_response(handler.request, api_version, correlation_id, answer)
        assert isinstance(answer, asyncio.Future | Promise)
        return self._encode_later(handler, context, answer)

    def _unsupported(self, handler: Handler, api_version: int, correlation_id: int) -> Reply:
        """An ApiVersions request newer than ours gets an answer of version 0, so that the client can step down."""
        if handler.api_key is ApiKey.API_VERSIONS:
            from ottla.broker.api.api_versions import unsupported_version

            return encode_response(handler.request, 0, correlation_id, unsupported_version(self._broker))
        raise CloseConnection(
            f"{handler.api_key.name} version {api_version} is not offered; "
            f"versions {handler.min_version} to {handler.max_version} are"
        )

    def _start(self, handler: Handler, context: RequestContext, request: Request) -> Reply:
        task = asyncio.get_running_loop().create_task(self._run(handler, context, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task if handler.abandon_on_close else asyncio.shield(task)

    async def _run(self, handler: Handler, context: RequestContext, request: Request) -> Parts | None:
        answer = handler.function(self._broker, context, request)
        assert isinstance(answer, Coroutine)
        return self._encode(handler, context, await answer)

    @staticmethod
    def _encode(handler: Handler, context: RequestContext, response: Response | None) -> Parts | None:
        if response is None:
            return None
        return encode_response(handler.request, context.api_version, context.correlation_id, response)

    def _encode_later(self, handler: Handler, context: RequestContext, answer: Later) -> Promise[Parts | None]:
        encoded: Promise[Parts | None] = Promise()

        def answered(source: Later) -> None:
            if source.cancelled():
                encoded.cancel()
                return
            error = source.exception()
            if error is not None:
                encoded.reject(error)
                return
            try:
                parts = self._encode(handler, context, source.result())
            except Exception as failure:
                encoded.reject(failure)
            else:
                encoded.resolve(parts)

        def abandoned(target: Promise[Parts | None]) -> None:
            if target.cancelled() and handler.abandon_on_close:
                answer.cancel()

        answer.add_done_callback(answered)
        encoded.add_done_callback(abandoned)
        return encoded

    async def finish(self) -> None:
        """Wait for the requests that are still being worked on."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)
