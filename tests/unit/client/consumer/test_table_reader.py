"""Tables beside other ways of reading, and up to ends: nothing is skipped, nothing comes out of order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from tests.waiting import tries

from ottla import Consumer
from ottla.client.consumer import AsyncConsumer, table_reader
from ottla.client.consumer.columns import decode
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

PATIENCE_SECONDS = 60.0
PLACE = TopicPartition("orders", 0)
RECORDS = 24
WIDE = 6


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """Every record is a chunk of its own to consumers that ask for few bytes."""
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as running:
        running.create_topic("orders")
        running.create_topic("wide", partitions=WIDE)
        for _ in range(RECORDS):
            running.produce("orders", b"x" * 900, partition=0)
        for partition in range(WIDE):
            for _ in range(4):
                running.produce("wide", b"x" * 900, partition=partition)
        yield running


SMALL: dict[str, Any] = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": 1000, "fetch_max_wait_ms": 20}


def consumer_of(broker: TestBroker, **settings: Any) -> AsyncConsumer[bytes, bytes]:
    return AsyncConsumer(broker.bootstrap_servers, **(SMALL | settings))


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, PATIENCE_SECONDS)

    asyncio.run(bounded())


async def begun(consumer: AsyncConsumer[bytes, bytes]) -> list[int]:
    """One record is read, and several chunks are buffered behind it."""
    consumer.assign([(*PLACE, 0)])
    found: list[int] = []
    while not found:
        found = [record.offset for record in await consumer.poll(1.0, 1)]
    await until(lambda: len(consumer._core.assignment.state(PLACE).chunks) >= 8)
    return found


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0.005)


def offsets_of(table: Any) -> list[int]:
    found: list[int] = table.column("offset").to_pylist()
    return found


async def first_table(consumer: AsyncConsumer[bytes, bytes], **options: Any) -> list[int]:
    async for table in consumer.tables(max_bytes=1, **options):
        return offsets_of(table)
    raise AssertionError("tables ended")


async def by_poll(consumer: AsyncConsumer[bytes, bytes]) -> list[int]:
    return [record.offset for record in await consumer.poll(0)]


async def by_take(consumer: AsyncConsumer[bytes, bytes]) -> list[int]:
    return [record.offset for record in consumer.take()]


async def by_records(consumer: AsyncConsumer[bytes, bytes]) -> list[int]:
    return [(await anext(consumer.records())).offset]


async def by_batches(consumer: AsyncConsumer[bytes, bytes]) -> list[int]:
    return [record.offset for record in await anext(consumer.batches())]


@pytest.mark.parametrize("read_on", [by_poll, by_take, by_records, by_batches, first_table])
@pytest.mark.parametrize("until_offset", [None, RECORDS - 1])
def test_reading_goes_on_behind_the_last_table(
    broker: TestBroker, read_on: Callable[[Any], Coroutine[Any, Any, list[int]]], until_offset: int | None
) -> None:
    """What was decoded ahead of a loop that was left is read by whoever reads next."""

    async def work() -> None:
        async with consumer_of(broker, group_id="g", enable_auto_commit=False) as consumer:
            found = await begun(consumer)
            found += await first_table(consumer, until=None if until_offset is None else {PLACE: until_offset})
            found += await read_on(consumer)
            await consumer.commit()
            committed = (await consumer.committed())[PLACE]
            assert committed is not None
            assert committed.offset == len(found)
            while len(found) < RECORDS:
                found += [record.offset for record in await consumer.poll(1.0)]
            assert found == list(range(RECORDS))
            assert consumer._core.fetcher.partition_max_bytes == SMALL["max_partition_fetch_bytes"]

    run(work())


def test_tables_and_polls_in_turn(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker) as consumer:
            found = await begun(consumer)
            tables = consumer.tables(max_bytes=1, until={PLACE: RECORDS - 2})
            while found[-1] < RECORDS - 4:
                found += offsets_of(await anext(tables))
                found += [record.offset for record in await consumer.poll(1.0, 1)]
            await tables.aclose()
            while len(found) < RECORDS:
                found += [record.offset for record in await consumer.poll(1.0)]
            assert found == list(range(RECORDS))

    run(work())


def test_tables_and_polls_in_turn_without_asyncio(broker: TestBroker) -> None:
    with Consumer(broker.bootstrap_servers, **SMALL) as consumer:
        consumer.assign([PLACE])
        found = [record.offset for record in consumer.poll(PATIENCE_SECONDS, 1)]
        for _ in tries():
            if consumer.metrics()["bytes_buffered"] > 8 * 900:
                break
        tables = consumer.tables(max_bytes=1)
        while len(found) < RECORDS - 1:
            found += offsets_of(next(tables))
            if len(found) < RECORDS:
                found += [record.offset for record in consumer.poll(PATIENCE_SECONDS, 1)]
        assert found == list(range(len(found)))


def test_a_chunk_that_was_held_is_not_overtaken(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partition is paused while it is decoded, and resumed while the next one is."""
    is_decoded, go_on = threading.Event(), threading.Event()

    def slow(piece: Any, *arguments: Any) -> Any:
        if piece.next_offset == 2:
            is_decoded.set()
        elif piece.next_offset == 3 and not go_on.wait(PATIENCE_SECONDS):
            raise AssertionError("nobody said so")
        return decode(piece, *arguments)

    async def work() -> None:
        async with consumer_of(broker) as consumer:
            found = await begun(consumer)
            monkeypatch.setattr(table_reader, "decode", slow)
            tables = consumer.tables(max_bytes=1)
            found += offsets_of(await anext(tables))
            consumer.pause()
            following = asyncio.ensure_future(anext(tables))
            await asyncio.to_thread(is_decoded.wait, PATIENCE_SECONDS)
            for _ in range(50):
                await asyncio.sleep(0.001)
            consumer.resume()
            go_on.set()
            found += offsets_of(await following)
            while len(found) < 8:
                found += offsets_of(await anext(tables))
            await tables.aclose()
            assert found == list(range(8))

    run(work())


@pytest.mark.parametrize("named", [range(WIDE), range(1, WIDE)])
def test_what_lies_behind_the_ends_keeps_no_room(broker: TestBroker, named: range) -> None:
    """Neither of the partitions that have one, nor of those that are not asked for; and all of it is read later."""

    async def work() -> None:
        # One chunk fills the room: who keeps it stops the others.
        settings = {"max_partition_fetch_bytes": 4000, "fetch_max_bytes": 4000, "prefetch_bytes": 4000}
        async with consumer_of(broker, **settings) as consumer:
            consumer.assign([("wide", partition) for partition in range(WIDE)])
            ends = {TopicPartition("wide", partition): 1 for partition in named}
            table = await consumer.to_arrow(until=ends, timeout=3.0)
            assert sorted(table.column("partition").to_pylist()) == list(named)
            assert set(offsets_of(table)) == {0}
            later: list[tuple[int, int]] = []
            while len(later) < 4 * WIDE - len(named):
                later += [(record.partition, record.offset) for record in await consumer.poll(1.0)]
            wanted = [(partition, offset) for partition in range(WIDE) for offset in range(4)]
            assert sorted(later) == [one for one in wanted if one[1] or one[0] not in named]

    run(work())
