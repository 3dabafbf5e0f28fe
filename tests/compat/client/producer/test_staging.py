"""Transactions that one process stages and another ends, on both brokers and in both versions of transactions."""

import asyncio
from typing import Any

import pytest
from tests.compat.client.producer.reading import Place
from tests.compat.client.producer.test_transactions import Limited, producer_of

from ottla.client.admin import AsyncAdmin
from ottla.client.errors import BrokerError, InvalidRequest, TransactionError
from ottla.client.types import StagedTransaction


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


class Ender:
    """Ends transactions in the wanted version, whatever the broker offers."""

    def __init__(self, place: Place, version: int) -> None:
        self._place = place
        self._version = version

    async def end(self, *staged: StagedTransaction, commit: bool) -> dict[str, str]:
        """What each id was told; nothing where it went well."""
        async with AsyncAdmin(self._place.bootstrap) as admin:
            assert admin._network is not None
            limited: Any = Limited(admin._network, self._version)
            admin._network = limited
            results = await admin.end_transactions(staged, commit=commit)
            errors = results.errors.items()
            return {one.transactional_id: error.code.name for one, error in errors if isinstance(error, BrokerError)}


async def stage(place: Place, name: str, topic: str, version: int, values: list[bytes], **settings: Any) -> Any:
    """Write in a transaction and go away without ending it."""
    async with producer_of(place, name, version, **settings) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % 2)
        return await producer.stage_transaction()


def committed(place: Place, topic: str) -> list[bytes]:
    return sorted(seen.value for seen in place.read(topic, 2, "read_committed") if seen.value is not None)


def test_another_process_commits_and_to_repeat_it_is_harmless(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, 2)
    ender = Ender(place, version)

    async def work() -> None:
        first = await stage(place, f"{topic}-a", topic, version, [b"a0", b"a1"])
        second = await stage(place, f"{topic}-b", topic, version, [b"b0", b"b1"])
        assert await ender.end(first, commit=True) == {}
        assert await ender.end(first, second, commit=True) == {}
        assert await ender.end(second, first, commit=True) == {}
        assert await ender.end(first, commit=False) == {first.transactional_id: "INVALID_TXN_STATE"}

    asyncio.run(work())
    assert committed(place, topic) == [b"a0", b"a1", b"b0", b"b1"]


def test_another_process_aborts(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, 2)
    ender = Ender(place, version)

    async def work() -> None:
        dropped = await stage(place, f"{topic}-a", topic, version, [b"a0", b"a1"])
        kept = await stage(place, f"{topic}-b", topic, version, [b"b0"])
        assert await ender.end(dropped, commit=False) == {}
        assert await ender.end(dropped, commit=False) == {}
        assert await ender.end(dropped, kept, commit=True) == {dropped.transactional_id: "INVALID_TXN_STATE"}

    asyncio.run(work())
    assert committed(place, topic) == [b"b0"]


def test_what_was_taken_over_can_no_longer_be_committed(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, 2)

    async def work() -> None:
        old = await stage(place, f"{topic}-a", topic, version, [b"old"])
        new = await stage(place, f"{topic}-a", topic, version, [b"new"])
        refused = await Ender(place, version).end(old, commit=True)
        assert refused[old.transactional_id] in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
        assert await Ender(place, version).end(new, commit=True) == {}

    asyncio.run(work())
    assert committed(place, topic) == [b"new"]


def test_a_producer_that_staged_may_end_it_itself_or_begin_anew(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, 2)

    async def work() -> None:
        async with producer_of(place, f"{topic}-a", version) as producer:
            await producer.init_transactions()
            for value, end in ((b"first", producer.commit_transaction), (b"second", producer.abort_transaction)):
                producer.begin_transaction()
                producer.send(topic, value, partition=0)
                assert await producer.stage_transaction() is not None
                with pytest.raises(TransactionError, match="handed over"):
                    producer.send(topic, b"too late", partition=0)
                await end()
            producer.begin_transaction()
            producer.send(topic, b"third", partition=1)
            staged = await producer.stage_transaction()
            assert staged is not None
            assert await Ender(place, version).end(staged, commit=True) == {}
            await producer.init_transactions()
            async with producer.transaction():
                producer.send(topic, b"fourth", partition=1)

    asyncio.run(work())
    assert committed(place, topic) == [b"first", b"fourth", b"third"]


def test_nothing_is_open_where_nothing_was_sent(place: Place, topic: str, version: int) -> None:
    place.make_topic(topic, 2)

    async def work() -> None:
        async with producer_of(place, f"{topic}-a", version) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            assert await producer.stage_transaction() is None
            async with producer.transaction():
                producer.send(topic, b"later", partition=0)

    asyncio.run(work())
    assert committed(place, topic) == [b"later"]


def test_one_id_has_one_open_transaction(place: Place) -> None:
    async def work() -> None:
        async with AsyncAdmin(place.bootstrap) as admin:
            with pytest.raises(InvalidRequest, match="only one can be open"):
                await admin.end_transactions(
                    [StagedTransaction("id", 1, 0), StagedTransaction("id", 1, 1)], commit=True
                )

    asyncio.run(work())
