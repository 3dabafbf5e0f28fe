"""Which transactions are listed, and patterns that cannot hold up the broker."""

import asyncio

import pytest
from tests.unit.transactions.stage import A, Stage

from ottla.ledger.ledger import State
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.transactions import listing
from ottla.transactions.listing import Filters, pattern_of_ids


async def listed(stage: Stage, filters: Filters) -> list[str]:
    return sorted(transaction.transactional_id for transaction in await stage.coordinator.find(filters))


def test_each_filter_and_all_together() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        idle = await stage.initialize("idle")
        busy = await stage.initialize("busy")
        await stage.add(busy, A, name="busy")
        stage.clock.advance(500)
        assert await listed(stage, Filters()) == ["busy", "idle"]
        assert await listed(stage, Filters(states=("Ongoing",))) == ["busy"]
        assert await listed(stage, Filters(states=("Empty", "Ongoing"))) == ["busy", "idle"]
        assert await listed(stage, Filters(states=("Prepare",))) == []
        assert Filters(states=("Prepare", "Empty", "Prepare")).unknown_states == ["Prepare"]
        assert await listed(stage, Filters(producer_ids=frozenset([idle[0], 5]))) == ["idle"]
        assert await listed(stage, Filters(duration_ms=499, states=("Ongoing",))) == ["busy"]
        assert await listed(stage, Filters(duration_ms=500, states=("Ongoing",))) == []
        assert await listed(stage, Filters(pattern=pattern_of_ids("[a-c].*y"))) == ["busy"]
        assert await listed(stage, Filters(pattern=pattern_of_ids("bus"))) == []

    asyncio.run(scenario())


def test_a_coordinator_that_loads_lists_nothing() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        ledger = next(iter(stage.coordinator.topic))
        ledger.state = State.LOADING
        with pytest.raises(KafkaError) as caught:
            await stage.coordinator.find(Filters())
        assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        ledger.state = State.READY

    asyncio.run(scenario())


def test_many_are_listed_while_others_are_served() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        for number in range(1200):
            await stage.initialize(f"id-{number}")
        found = asyncio.ensure_future(stage.coordinator.find(Filters(pattern=pattern_of_ids("id-.*0"))))
        turns = 0
        while not found.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(found.result()) == 120
        assert turns > 10

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["(", "a(?=b)", r"(a)\1", "x" * 10_001])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(KafkaError) as caught:
        pattern_of_ids(text)
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_EFFORT", 20_000)

    async def scenario() -> None:
        stage = await Stage().start()
        await stage.initialize("a" * 1000)
        assert await listed(stage, Filters(pattern=pattern_of_ids("a+"))) == ["a" * 1000]
        with pytest.raises(KafkaError) as caught:
            await listed(stage, Filters(pattern=pattern_of_ids("(a?){200}a{200}b")))
        assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION

    asyncio.run(scenario())
