"""Who waits for a consumer's records is told when there are some, or when the time is over, whoever waited before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from ottla.client.consumer.attention import Attention
from ottla.client.consumer.prefetch import Prefetch

LONG_SECONDS = 3600.0
SHORT_SECONDS = 0.01


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, 30)

    asyncio.run(bounded())


def new_attention() -> Attention:
    return Attention(Prefetch(1000, lambda: None))


def test_a_short_wait_after_one_that_was_given_up() -> None:
    async def work() -> None:
        attention = new_attention()
        long = asyncio.ensure_future(attention.wait(LONG_SECONDS))
        await asyncio.sleep(0)
        long.cancel()
        assert not await attention.wait(SHORT_SECONDS)
        assert not attention.is_awaited

    run(work())


def test_waits_of_any_length_end_each_at_its_time() -> None:
    async def work() -> None:
        attention = new_attention()
        waits = [asyncio.ensure_future(attention.wait(SHORT_SECONDS * number)) for number in (3, 1, 2)]
        forever = asyncio.ensure_future(attention.wait(None))
        assert await asyncio.gather(*waits) == [False, False, False]
        assert not forever.done()
        assert not await attention.wait(SHORT_SECONDS)
        attention.wake()
        assert await forever
        assert not attention.is_awaited

    run(work())


def test_the_time_of_a_wait_that_was_over_early_ends_no_other() -> None:
    async def work() -> None:
        attention = new_attention()
        early = asyncio.ensure_future(attention.wait(SHORT_SECONDS))
        await asyncio.sleep(0)
        attention.wake()
        assert await early
        late = asyncio.ensure_future(attention.wait(LONG_SECONDS))
        await asyncio.sleep(5 * SHORT_SECONDS)
        assert not late.done()
        attention.wake()
        assert await late
        attention.close()

    run(work())


# Whoever waits goes on at once.

VARIABLE: ContextVar[str] = ContextVar("variable", default="none")


def call_from_loop(work: Callable[[], None]) -> asyncio.Future[None]:
    """As a socket's callback is called: by the loop, in no task."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def call() -> None:
        work()
        done.set_result(None)

    loop.call_soon(call)
    return done


def test_a_task_goes_on_before_the_call_that_wakes_it_returns() -> None:
    async def work() -> None:
        attention, seen = new_attention(), []

        async def user() -> None:
            VARIABLE.set("the task's")
            for number in range(3):
                assert await attention.wait(LONG_SECONDS)
                task = asyncio.current_task()
                assert task is not None
                seen.append((number, task.get_name(), VARIABLE.get()))

        task = asyncio.create_task(user(), name="user")
        await asyncio.sleep(0)
        for number in range(3):

            def wake(number: int = number) -> None:
                attention.wake_at_once()
                assert seen[-1] == (number, "user", "the task's")
                assert asyncio.current_task() is None
                assert VARIABLE.get() == "none"

            await call_from_loop(wake)
        await task
        assert not attention.is_awaited

    run(work())


def test_a_task_does_not_go_on_inside_of_another() -> None:
    async def work() -> None:
        attention = new_attention()
        waiting = asyncio.create_task(attention.wait(LONG_SECONDS))
        await asyncio.sleep(0)
        attention.wake_at_once()
        assert attention.is_awaited, "it has its turn later"
        assert await waiting
        assert not attention.is_awaited

    run(work())


def test_what_fails_in_a_task_is_its_own() -> None:
    async def work() -> None:
        attention, others = new_attention(), []

        async def failing() -> None:
            await attention.wait(LONG_SECONDS)
            raise ValueError("of the user")

        async def other() -> None:
            others.append(await attention.wait(LONG_SECONDS))

        tasks = [asyncio.create_task(failing()), asyncio.create_task(other())]
        await asyncio.sleep(0)
        await call_from_loop(attention.wake_at_once)
        assert others == [True]
        with pytest.raises(ValueError, match="of the user"):
            await tasks[0]

    run(work())


@pytest.mark.parametrize("is_woken", [True, False])
def test_a_task_that_is_cancelled_waits_no_more(is_woken: bool) -> None:
    """Also when it was woken in the same turn: a cancellation that came first counts."""

    async def work() -> None:
        attention = new_attention()
        waiting = asyncio.create_task(attention.wait(LONG_SECONDS))
        await asyncio.sleep(0)

        def cancel() -> None:
            waiting.cancel()
            if is_woken:
                attention.wake_at_once()

        await call_from_loop(cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not attention.is_awaited

    run(work())


def test_a_wait_that_ends_before_it_is_awaited() -> None:
    async def work() -> None:
        attention = new_attention()
        wait = attention.begin_to_wait(LONG_SECONDS)
        assert wait is not None
        await call_from_loop(attention.wake_at_once)
        assert await wait
        attention.end_wait(wait)

    run(work())


def test_a_timeout_around_a_wait_ends_it() -> None:
    async def work() -> None:
        attention = new_attention()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SHORT_SECONDS):
                await attention.wait(LONG_SECONDS)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(attention.wait(None), SHORT_SECONDS)
        assert not attention.is_awaited

    run(work())
