"""Committed offsets: what is committed when, by whom, and where the next consumer begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.compat.client.consumer.test_reading import numbered, read, values
from tests.compat.client.consumer.writing import PATIENCE_SECONDS, Writer, asynchronous

from ottla.client.consumer import AsyncConsumer, GroupMetadata
from ottla.client.errors import BrokerError, OttlaError
from ottla.client.types import OffsetAndMetadata, TopicPartition


def of_group(writer: Writer, topic: str, **settings: Any) -> AsyncConsumer[Any, Any]:
    defaults: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    return AsyncConsumer(writer.bootstrap, group_id=f"group-of-{topic}", **(defaults | settings))


async def committed_by(writer: Writer, topic: str) -> OffsetAndMetadata | None:
    async with of_group(writer, topic, enable_auto_commit=False) as asker:
        return (await asker.committed([(topic, 0)]))[TopicPartition(topic, 0)]


@asynchronous
async def test_positions_records_and_offsets_can_be_committed(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))
    place = TopicPartition(topic, 0)
    async with of_group(writer, topic, enable_auto_commit=False) as consumer:
        consumer.assign([place])
        assert await consumer.committed() == {place: None}
        records = await read(consumer, 10)
        await consumer.commit()
        first = (await consumer.committed())[place]
        assert first is not None
        assert (first.offset, first.metadata, first.leader_epoch) == (10, "", records[-1].leader_epoch)
        await consumer.commit(records[4])
        assert (await consumer.committed())[place] == OffsetAndMetadata(5, "", records[4].leader_epoch)
        await consumer.commit({(topic, 0): OffsetAndMetadata(7, "a note")})
        assert (await consumer.committed([place]))[place] == OffsetAndMetadata(7, "a note")
        assert consumer.metrics()["commit_count"] == 3
        assert consumer.group_metadata() == GroupMetadata(f"group-of-{topic}")
    async with of_group(writer, topic) as following:
        following.assign([place])
        assert values(await read(following, 3)) == numbered(3, 7)


@asynchronous
async def test_commits_can_be_left_to_run_with_a_callback_or_a_task(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(3))
    place = TopicPartition(topic, 0)
    told: list[tuple[dict[TopicPartition, OffsetAndMetadata], OttlaError | None]] = []
    async with of_group(writer, topic, enable_auto_commit=False) as consumer:
        consumer.assign([place])
        await consumer.commit_async({place: 2}, lambda offsets, error: told.append((offsets, error)))
        assert told == [({place: OffsetAndMetadata(2)}, None)]
        with pytest.raises(BrokerError):
            await consumer.commit_async({place: OffsetAndMetadata(3, "x" * 10_000)})
        consumer.commit_async({place: 1})
    assert await committed_by(writer, topic) == OffsetAndMetadata(1)


@asynchronous
async def test_closing_commits_what_was_handed_out(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))
    async with of_group(writer, topic) as consumer:
        consumer.assign([(topic, 0)])
        async for record in consumer:
            if record.offset == 3:
                break
    found = await committed_by(writer, topic)
    assert found is not None
    assert found.offset == 4


@asynchronous
async def test_a_record_whose_work_failed_is_not_committed(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))

    async def work() -> None:
        async with of_group(writer, topic) as consumer:
            consumer.assign([(topic, 0)])
            async for record in consumer:
                if record.offset == 3:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    found = await committed_by(writer, topic)
    assert found is not None
    assert found.offset == 3


@asynchronous
async def test_auto_commits_hold_only_what_the_user_is_done_with(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))
    place = TopicPartition(topic, 0)

    async def until(consumer: AsyncConsumer[Any, Any], offset: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = (await consumer.committed())[place]
                if found is not None and found.offset == offset:
                    return

    async with of_group(writer, topic, auto_commit_interval_ms=20, max_poll_records=4) as consumer:
        consumer.assign([place])
        assert len(await consumer.poll(PATIENCE_SECONDS)) == 4
        await until(consumer, 0)
        assert len(await consumer.poll(PATIENCE_SECONDS)) == 4
        await until(consumer, 4)
        iterator = consumer.records()
        assert (await anext(iterator)).offset == 8
        await until(consumer, 8)
        assert (await anext(iterator)).offset == 9
        await until(consumer, 9)


@asynchronous
async def test_without_auto_commit_nothing_is_committed(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(3))
    async with of_group(writer, topic, enable_auto_commit=False, auto_commit_interval_ms=10) as consumer:
        consumer.assign([(topic, 0)])
        await read(consumer, 3)
    assert await committed_by(writer, topic) is None
