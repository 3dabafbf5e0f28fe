"""A chunk of many batches becomes tables piece by piece: bounded, in order, and as if it were one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla import AsyncProducer
from ottla.client.consumer import AsyncConsumer, table_reader
from ottla.client.errors import CorruptBatch
from ottla.client.types import TopicPartition
from ottla.records import BatchHeader, arrow
from ottla.testing import TestBroker

PATIENCE_SECONDS = 60.0
BATCHES = 24
ROWS = 4
RECORDS = BATCHES * ROWS
VALUE = b"x" * 900


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """Topics by codec; one fetch brings all their batches. `mixed` has markers and an aborted transaction in it."""
    with TestBroker() as running:
        for codec in ("none", "zstd", "mixed"):
            running.create_topic(codec)
            asyncio.run(fill(running, codec))
        yield running


async def fill(broker: TestBroker, codec: str) -> None:
    settings: dict[str, Any] = {"linger_ms": 1000, "compression_type": "zstd" if codec == "mixed" else codec}
    if codec == "mixed":
        settings |= {"transactional_id": "filling"}
    async with AsyncProducer(broker.bootstrap_servers, **settings) as producer:
        if codec == "mixed":
            await producer.init_transactions()
        for batch in range(BATCHES):
            if codec == "mixed":
                producer.begin_transaction()
            for _ in range(ROWS):
                producer.send(codec, VALUE, partition=0)
            if codec != "mixed":
                await producer.flush()
            elif batch % 3:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, PATIENCE_SECONDS)

    asyncio.run(bounded())


@asynccontextmanager
async def consumer_of(broker: TestBroker, topic: str, **settings: Any) -> AsyncIterator[AsyncConsumer[bytes, bytes]]:
    consumer: AsyncConsumer[bytes, bytes]
    async with AsyncConsumer(broker.bootstrap_servers, **settings) as consumer:
        consumer.assign([(topic, 0, 0)])
        yield consumer


def offsets_of(table: Any) -> list[int]:
    found: list[int] = table.column("offset").to_pylist()
    return found


@pytest.fixture(params=[1, 2 * ROWS * len(VALUE), 1 << 30], ids=["batches", "pairs", "whole"])
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    wanted: int = request.param
    monkeypatch.setattr(table_reader, "_PIECE_BYTES", wanted)
    return wanted


@pytest.mark.parametrize("topic", ["none", "zstd"])
@pytest.mark.parametrize("max_bytes", [1, 20_000, 1 << 30])
def test_all_rows_come_in_order(broker: TestBroker, topic: str, piece_bytes: int, max_bytes: int) -> None:
    async def work() -> None:
        async with consumer_of(broker, topic) as consumer:
            found: list[int] = []
            async for table in consumer.tables(max_bytes=max_bytes):
                found += offsets_of(table)
                assert await consumer.position((topic, 0)) == len(found)
                # One batch more than a piece has at least, or than a table may have at most.
                assert table.num_rows * len(VALUE) <= max(piece_bytes, max_bytes) + ROWS * len(VALUE)
                if len(found) >= RECORDS:
                    break
            assert found == list(range(RECORDS))

    run(work())


def test_compressed_batches_become_tables_of_bounded_size(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fetched is a hundredth of what it becomes: that must not be in memory all at once."""
    monkeypatch.setattr(table_reader, "_PIECE_BYTES", 2 * ROWS * len(VALUE))

    async def work() -> None:
        async with consumer_of(broker, "zstd") as consumer:
            rows = [table.num_rows async for table in consumer.tables(max_bytes=1, until={("zstd", 0): RECORDS})]
            assert rows == [2 * ROWS] * (BATCHES // 2)

    run(work())


@pytest.mark.parametrize("until", [1, ROWS, 2 * ROWS + 1, RECORDS - 1, RECORDS])
def test_an_end_within_a_piece(broker: TestBroker, piece_bytes: int, until: int) -> None:
    async def work() -> None:
        async with consumer_of(broker, "zstd") as consumer:
            found: list[int] = []
            async for table in consumer.tables(until={("zstd", 0): until}):
                found += offsets_of(table)
            assert found == list(range(until))
            while len(found) < RECORDS:
                found += [record.offset for record in await consumer.poll(1.0)]
            assert found == list(range(RECORDS))

    run(work())


def test_a_loop_that_is_left_between_two_pieces(broker: TestBroker, piece_bytes: int) -> None:
    """Polls, pauses and new loops go on behind the last row that was handed out."""

    async def work() -> None:
        async with consumer_of(broker, "none", group_id=f"left-{piece_bytes}", enable_auto_commit=False) as consumer:
            found: list[int] = []
            while len(found) < RECORDS:
                async for table in consumer.tables(max_rows=ROWS + 1):
                    found += offsets_of(table)
                    break
                if len(found) < RECORDS:
                    found += [record.offset for record in await consumer.poll(1.0, 1)]
                consumer.pause()
                consumer.resume()
                await consumer.commit()
                committed = (await consumer.committed())[TopicPartition("none", 0)]
                assert committed is not None
                assert committed.offset == len(found)
            assert found == list(range(RECORDS))

    run(work())


def test_batches_that_are_not_for_the_user_are_passed_over(broker: TestBroker, piece_bytes: int) -> None:
    async def work() -> None:
        async with consumer_of(broker, "mixed", isolation_level="read_committed") as consumer:
            end = (await consumer.end_offsets([("mixed", 0)]))[TopicPartition("mixed", 0)]
            wanted: list[int] = []
            async with consumer_of(broker, "mixed", isolation_level="read_committed") as other:
                while await other.position(("mixed", 0)) < end:
                    wanted += [record.offset for record in await other.poll(1.0)]
            table = await consumer.to_arrow()
            assert offsets_of(table) == wanted
            assert len(wanted) == ROWS * sum(1 for batch in range(BATCHES) if batch % 3)
            assert await consumer.position(("mixed", 0)) == end

    run(work())


def test_rows_before_a_damaged_batch_come_first(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the piece with the damaged batch cannot be made, and reading goes on behind that batch."""
    monkeypatch.setattr(table_reader, "_PIECE_BYTES", 1)
    add = arrow.ArrowRows.add

    def damaging(self: arrow.ArrowRows, header: BatchHeader, stored: memoryview, **expected: int) -> None:
        add(self, header, stored[:-1] if header.base_offset == 2 * ROWS else stored, **expected)

    monkeypatch.setattr(arrow.ArrowRows, "add", damaging)

    async def work() -> None:
        async with consumer_of(broker, "none") as consumer:
            tables = consumer.tables(max_bytes=1)
            found = offsets_of(await anext(tables)) + offsets_of(await anext(tables))
            with pytest.raises(CorruptBatch) as caught:
                await anext(tables)
            assert found == list(range(2 * ROWS))
            assert caught.value.offset == 2 * ROWS
            consumer.seek(("none", 0), caught.value.next_offset)
            async for table in consumer.tables(max_bytes=1, until={("none", 0): RECORDS}):
                found += offsets_of(table)
            assert found == [offset for offset in range(RECORDS) if not 2 * ROWS <= offset < 3 * ROWS]

    run(work())


def test_a_table_keeps_its_rows_while_others_are_made(broker: TestBroker) -> None:
    """Memory is used again only when nobody has it any more."""

    def digest(table: Any) -> str:
        return hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()

    async def work() -> None:
        async with consumer_of(broker, "none") as consumer:
            kept: list[tuple[Any, str]] = []
            for _ in range(3):
                consumer.seek(("none", 0), 0)
                tables = consumer.tables(max_bytes=1)
                for number in range(BATCHES):
                    table = await anext(tables)
                    if number % 2:
                        # A part of a table is as good as the whole.
                        kept.append((table.slice(1), digest(table.slice(1))))
                    if table.column("offset")[-1].as_py() == RECORDS - 1:
                        break
                await tables.aclose()
            assert all(digest(table) == before for table, before in kept)

    run(work())
