"""Counting around handlers: answers now, later, never, and the error codes in them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.broker.exposition import Exposition
from tests.unit.broker.serving import until

from ottla.broker import api
from ottla.broker.connection import CloseConnection
from ottla.broker.dispatch import Handler, registered_handlers
from ottla.broker.metrics_requests import RequestMetrics, count_errors, error_places
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Response
from ottla.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import MetadataResponse
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.runtime.promise import Promise

assert api.__all__
VERSION = 12


class Context:
    api_version = VERSION


class Rig:
    """One API with a handler of the test's own, and a clock that the test moves."""

    def __init__(self, key: ApiKey, function: Callable[..., Any], is_coroutine: bool = False) -> None:
        self.now = 100.0
        self.requests = RequestMetrics(lambda: self.now)
        handler = replace(registered_handlers()[key], function=function, is_coroutine=is_coroutine)
        self._handler: Handler = self.requests.watched({key: handler})[key]
        self._name = handler.request.__name__.removesuffix("Request")

    def ask(self) -> Any:
        return self._handler.function(None, Context(), None)  # type: ignore[arg-type]  # the handlers here want none

    def numbers(self) -> tuple[float, float, float]:
        """Requests, answers that have a time, and the sum of those times."""
        shown = Exposition("".join(self.requests.lines()))
        times = "kafka_network_requestmetrics_totaltimems"
        return (
            shown.value("kafka_network_requestmetrics_requests_total", request=self._name, version=str(VERSION)),
            shown.value(f"{times}_count", request=self._name),
            shown.value(f"{times}_sum", request=self._name),
        )

    def errors(self, code: ErrorCode) -> float:
        shown = Exposition("".join(self.requests.lines()))
        return shown.value("kafka_network_requestmetrics_errors_total", request=self._name, error=code.name)


def produced(*codes: ErrorCode) -> ProduceResponse:
    partitions = [PartitionProduceResponse(error_code=code) for code in codes]
    return ProduceResponse(responses=[TopicProduceResponse(name="a", partition_responses=partitions)])


def counted(response: Response) -> dict[int, int]:
    errors: dict[int, int] = {}
    count_errors(errors, response, error_places(type(response)))
    return errors


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (produced(ErrorCode.NONE), {}),
        (produced(ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD), {2: 1, 87: 1}),
        (FetchResponse(error_code=70), {70: 1}),
        (
            FetchResponse(
                error_code=71, responses=[FetchableTopicResponse(topic="a", partitions=[PartitionData(error_code=3)])]
            ),
            {71: 1, 3: 1},
        ),
        (CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_code=36)] * 2), {36: 2}),
        (MetadataResponse(), {}),
    ],
)
def test_error_codes_are_found_wherever_they_are(response: Response, expected: dict[int, int]) -> None:
    assert counted(response) == expected


def test_every_answer_of_this_broker_can_be_looked_at() -> None:
    for handler in registered_handlers().values():
        assert counted(handler.request.RESPONSE()) == {}


def test_an_answer_that_is_there_at_once() -> None:
    rig = Rig(ApiKey.PRODUCE, lambda *_: produced(ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE))
    assert rig.ask().responses
    rig.ask()
    assert rig.numbers() == (2, 2, 0)
    assert rig.errors(ErrorCode.CORRUPT_MESSAGE) == 4
    assert rig.errors(ErrorCode.NONE) == 0


def test_no_answer_where_none_is_wanted() -> None:
    rig = Rig(ApiKey.PRODUCE, lambda *_: None)
    assert rig.ask() is None
    assert rig.numbers() == (1, 1, 0)


def test_an_answer_that_comes_later_has_its_wait_in_its_time() -> None:
    promise: Promise[Response] = Promise()
    rig = Rig(ApiKey.PRODUCE, lambda *_: promise)
    assert rig.ask() is promise
    assert rig.numbers() == (1, 0, 0)
    rig.now += 0.25
    promise.resolve(produced(ErrorCode.REQUEST_TIMED_OUT))
    assert rig.numbers() == (1, 1, 250)
    assert rig.errors(ErrorCode.REQUEST_TIMED_OUT) == 1


def test_an_answer_that_nobody_waits_for_any_more_has_no_time() -> None:
    promise: Promise[Response] = Promise()
    rig = Rig(ApiKey.PRODUCE, lambda *_: promise)
    rig.ask()
    promise.cancel()
    assert rig.numbers() == (1, 0, 0)


def test_futures_and_coroutines() -> None:
    async def scenario() -> None:
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        rig = Rig(ApiKey.PRODUCE, lambda *_: future)
        rig.ask()
        future.set_exception(OSError("gone"))
        with pytest.raises(OSError, match="gone"):
            await future
        await until(lambda: rig.errors(ErrorCode.UNKNOWN_SERVER_ERROR) == 1)
        assert rig.numbers() == (1, 0, 0)

        async def handle(*_: object) -> Response:
            rig.now += 0.5
            return produced(ErrorCode.NONE)

        rig = Rig(ApiKey.PRODUCE, handle, is_coroutine=True)
        assert await rig.ask() == produced(ErrorCode.NONE)
        assert rig.numbers() == (1, 1, 500)

        async def fail(*_: object) -> Response:
            raise RuntimeError("a defect")

        rig = Rig(ApiKey.PRODUCE, fail, is_coroutine=True)
        with pytest.raises(RuntimeError, match="a defect"):
            await rig.ask()
        assert rig.errors(ErrorCode.UNKNOWN_SERVER_ERROR) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(("error", "seen"), [(CloseConnection("refused"), 0), (ValueError("a defect"), 1)])
def test_a_handler_that_raises_is_not_hidden(error: Exception, seen: int) -> None:
    def fail(*_: object) -> None:
        raise error

    rig = Rig(ApiKey.PRODUCE, fail)
    with pytest.raises(type(error), match=str(error)):
        rig.ask()
    assert rig.numbers() == (1, 0, 0)
    assert rig.errors(ErrorCode.UNKNOWN_SERVER_ERROR) == seen
