"""Who waits for a consumer's records is told when there are some, or when the time is over, whoever waited before."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

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
