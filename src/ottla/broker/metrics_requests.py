"""Requests, counted and timed around their handlers.

Only where somebody watches: handlers are wrapped when the broker is made, and a broker without metrics calls them as
they are. A request costs two readings of the clock, three additions and a look at the error codes of its answer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ottla.broker.connection import CloseConnection
from ottla.broker.dispatch import Answer, Handler, RequestContext
from ottla.broker.metrics_text import COUNTER, HISTOGRAM, Family, Histogram
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Response
from ottla.protocol.schema import Struct, StructType
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

REQUESTS = Family(
    "kafka_network_requestmetrics_requests_total", COUNTER, "Requests that were handled.", ("request", "version")
)
ERRORS = Family(
    "kafka_network_requestmetrics_errors_total",
    COUNTER,
    "Error codes in answers, each place of an answer by itself; NONE is not counted.",
    ("request", "error"),
)
TIMES = Family(
    "kafka_network_requestmetrics_totaltimems",
    HISTOGRAM,
    "Milliseconds from the decoded request to its answer, waits included.",
    ("request",),
)
FAMILIES = (REQUESTS, ERRORS, TIMES)
BOUNDS_MS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0, 30000.0)

_ERROR_FIELD_SUFFIX = "error_code"

# Where the error codes of a struct are: the names of its own, and the fields below which there are more.
ErrorPlaces = tuple[tuple[str, ...], tuple[tuple[str, bool, Any], ...]]
LEAF: ErrorPlaces = (("error_code",), ())


def error_places(struct: StructType) -> ErrorPlaces:
    own: list[str] = []
    below: list[tuple[str, bool, Any]] = []
    for one in struct.FIELDS:
        if isinstance(one.type, StructType):
            places = error_places(one.type)
            if places != ((), ()):
                below.append((one.name, one.is_array, places))
        elif one.name.endswith(_ERROR_FIELD_SUFFIX) and not one.is_array:
            own.append(one.name)
    return tuple(own), tuple(below)


def count_errors(errors: dict[int, int], message: Struct, places: ErrorPlaces) -> None:
    """Add the error codes of an answer that are not NONE. It looks at every answer, so it makes nothing."""
    own, below = places
    for name in own:
        code = getattr(message, name)
        if code:
            errors[code] = errors.get(code, 0) + 1
    for name, is_array, inner in below:
        value = getattr(message, name)
        if value is None:
            continue
        if not is_array:
            count_errors(errors, value, inner)
        elif inner == LEAF:
            for item in value:
                code = item.error_code
                if code:
                    errors[code] = errors.get(code, 0) + 1
        else:
            for item in value:
                count_errors(errors, item, inner)


class ApiNumbers:
    """The requests of one API: their number by version, the errors in their answers by code, and their times."""

    __slots__ = ("_clock", "_places", "errors", "name", "times", "versions")

    def __init__(self, handler: Handler, clock: Callable[[], float]) -> None:
        self.name = handler.request.__name__.removesuffix("Request")
        self.versions = [0] * (handler.max_version + 1)
        self.errors: dict[int, int] = {}
        self.times = Histogram(BOUNDS_MS)
        self._places = error_places(handler.request.RESPONSE)
        self._clock = clock

    def answered(self, started: float, response: Response | None) -> None:
        """No answer is one too, where the client wants none."""
        if response is not None:
            count_errors(self.errors, response, self._places)
        self.times.observe((self._clock() - started) * 1000)

    def failed(self, error: BaseException) -> None:
        """The handler raised: on purpose, to hang up, or because of a defect."""
        if isinstance(error, Exception) and not isinstance(error, CloseConnection):
            code = int(ErrorCode.UNKNOWN_SERVER_ERROR)
            self.errors[code] = self.errors.get(code, 0) + 1


class RequestMetrics:
    """The numbers of all APIs, kept by handlers that `watched` gives back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._numbers: list[ApiNumbers] = []

    def watched(self, handlers: Mapping[int, Handler]) -> dict[int, Handler]:
        """The same handlers, counting."""
        return {key: self._watch(handler) for key, handler in handlers.items()}

    def _watch(self, handler: Handler) -> Handler:
        numbers = ApiNumbers(handler, self._clock)
        self._numbers.append(numbers)
        wrap = _counting_coroutine if handler.is_coroutine else _counting
        return replace(handler, function=wrap(handler, numbers, self._clock))

    def lines(self) -> Iterator[str]:
        yield REQUESTS.head
        for numbers in self._numbers:
            for version, count in enumerate(numbers.versions):
                if count:
                    yield REQUESTS.line(count, numbers.name, version)
        yield ERRORS.head
        for numbers in self._numbers:
            for code, count in sorted(numbers.errors.items()):
                yield ERRORS.line(count, numbers.name, ErrorCode(code).name)
        yield TIMES.head
        for numbers in self._numbers:
            if numbers.times.count:
                yield from numbers.times.lines(TIMES, numbers.name)


def _counting(
    handler: Handler, numbers: ApiNumbers, clock: Callable[[], float]
) -> Callable[["Broker", RequestContext, Any], Answer]:
    function, versions = handler.function, numbers.versions

    def counting(broker: "Broker", context: RequestContext, request: Any) -> Answer:
        started = clock()
        versions[context.api_version] += 1
        try:
            answer = function(broker, context, request)
        except BaseException as error:
            numbers.failed(error)
            raise
        if answer is None or isinstance(answer, Response):
            numbers.answered(started, answer)
        else:
            assert isinstance(answer, asyncio.Future | Promise)
            answer.add_done_callback(lambda done: _ended(numbers, started, done))
        return answer

    return counting


def _counting_coroutine(
    handler: Handler, numbers: ApiNumbers, clock: Callable[[], float]
) -> Callable[["Broker", RequestContext, Any], Answer]:
    function, versions = handler.function, numbers.versions

    async def counting(broker: "Broker", context: RequestContext, request: Any) -> Response:
        started = clock()
        versions[context.api_version] += 1
        answer = function(broker, context, request)
        assert isinstance(answer, Coroutine)
        try:
            response: Response = await answer
        except BaseException as error:
            numbers.failed(error)
            raise
        numbers.answered(started, response)
        return response

    return counting


def _ended(numbers: ApiNumbers, started: float, done: asyncio.Future[Any] | Promise[Any]) -> None:
    """What was given up by a client that left has no time of its own."""
    if done.cancelled():
        return
    error = done.exception()
    if error is None:
        numbers.answered(started, done.result())
    else:
        numbers.failed(error)
