"""The time of a request is the time of its steps, whatever becomes of them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.broker.quotas.broker_quotas import BrokerQuotas
from ottla.broker.quotas.metering import RequestMeter, _Stopwatch
from ottla.broker.quotas.rates import Windows
from ottla.protocol.message import Response
from ottla.protocol.messages.metadata import MetadataResponse
from ottla.testing import ManualClock


class Refused(Exception):
    pass


def measured(work: Callable[[ManualClock], Awaitable[MetadataResponse]]) -> tuple[float, BaseException | None]:
    """Seconds that a handler took, and how it failed."""
    clock = ManualClock()
    meter = RequestMeter(BrokerQuotas(clock, Windows(), Windows()), "app", 100)
    failure: BaseException | None = None

    async def scenario() -> None:
        nonlocal failure

        async def handler() -> MetadataResponse:
            return await work(clock)

        try:
            assert isinstance(await _Stopwatch(handler(), meter), MetadataResponse)
        except Refused as error:
            failure = error

    asyncio.run(scenario())
    return meter._percent() / 100, failure


def test_steps_count_and_waits_do_not() -> None:
    async def work(clock: ManualClock) -> MetadataResponse:
        clock.advance(1000)
        asyncio.get_running_loop().call_soon(clock.advance, 60_000)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clock.advance(500)
        return MetadataResponse()

    assert measured(work) == (1.5, None)


def test_what_is_waited_for_may_fail() -> None:
    async def work(clock: ManualClock) -> MetadataResponse:
        failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(failing.set_exception, Refused())
        try:
            await failing
        finally:
            clock.advance(2000)
        return MetadataResponse()

    seconds, failure = measured(work)
    assert seconds == 2.0
    assert isinstance(failure, Refused)


def test_an_error_that_is_dealt_with_is_none() -> None:
    async def work(clock: ManualClock) -> MetadataResponse:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)
        except TimeoutError:
            clock.advance(250)
        await asyncio.sleep(0)
        return MetadataResponse()

    assert measured(work) == (0.25, None)


def test_a_request_that_is_cancelled_ends() -> None:
    ended: list[bool] = []

    async def scenario() -> None:
        meter = RequestMeter(BrokerQuotas(ManualClock(), Windows(), Windows()), None, 0)

        async def handler() -> MetadataResponse:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(True)
            return MetadataResponse()

        async def request() -> Response:
            return await _Stopwatch(handler(), meter)

        task = asyncio.create_task(request())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert ended == [True]
