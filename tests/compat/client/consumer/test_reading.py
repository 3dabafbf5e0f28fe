"""Reading records: positions, seeks, pauses, offsets, isolation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import pytest
from tests.compat.client.consumer.writing import PATIENCE_SECONDS, Writer, asynchronous
from tests.waiting import until_settled

from ottla.client.consumer import AsyncConsumer
from ottla.client.errors import (
    ClientClosed,
    ConfigError,
    ConsumerError,
    Interrupted,
    NoGroup,
    NoOffset,
    NotAssigned,
    UndecodableRecord,
    UnknownTopic,
)
from ottla.client.types import OffsetAndTimestamp, TopicPartition


def consumer_of(writer: Writer, **settings: Any) -> AsyncConsumer[Any, Any]:
    """One that does not let the other questions of a test wait long behind its fetches."""
    return AsyncConsumer(writer.bootstrap, **({"fetch_max_wait_ms": 50} | settings))


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


async def read(consumer: AsyncConsumer[Any, Any], count: int) -> list[Any]:
    """That many records, and a moment in which no more may come."""
    records: list[Any] = []
    while len(records) < count:
        found = await consumer.poll(PATIENCE_SECONDS)
        assert found, f"{count} records expected, {len(records)} came"
        records += found
    assert await consumer.poll(0.05) == []
    return records


def values(records: Iterable[Any]) -> list[bytes]:
    return [record.value for record in records]


@asynchronous
async def test_everything_is_read_once_and_in_order_in_every_codec(writer: Writer) -> None:
    topic = writer.topic(3)
    for partition in range(3):
        for index, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
            some = numbered(40, partition * 1000 + index * 40)
            writer.write(topic, some, partition=partition, codec=codec, headers=[("n", b"1")])
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, partition) for partition in range(3)])
        records = await read(consumer, 600)
        for partition in range(3):
            of_partition = [record for record in records if record.partition == partition]
            assert values(of_partition) == numbered(200, partition * 1000)
            assert [record.offset for record in of_partition] == list(range(200))
        assert {(record.topic, record.key, record.headers) for record in records} == {(topic, b"key", (("n", b"1"),))}
        assert await consumer.lag() == {TopicPartition(topic, partition): 0 for partition in range(3)}
        metrics = consumer.metrics()
        assert metrics["records_consumed"] == 600
        assert metrics["bytes_consumed"] == metrics["bytes_fetched"] > 0


@asynchronous
async def test_a_loop_that_breaks_has_consumed_what_it_saw(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(100))
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        seen = []
        async for record in consumer:
            seen.append(record.value)
            if len(seen) == 10:
                break
        assert await consumer.position((topic, 0)) == 10
        seen += [record.value async for record in consumer.records(timeout=1.0)]
        assert seen == numbered(100)


@asynchronous
async def test_batches_are_of_one_partition_each(writer: Writer) -> None:
    topic = writer.topic(2)
    for partition in range(2):
        writer.write(topic, numbered(50), partition=partition)
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        seen: dict[int, list[bytes]] = {0: [], 1: []}
        async for batch in consumer.batches(max_records=20, timeout=PATIENCE_SECONDS):
            (partition,) = {record.partition for record in batch}
            assert 0 < len(batch) <= 20
            seen[partition] += values(batch)
            if sum(map(len, seen.values())) == 100:
                break
        assert seen == {0: numbered(50), 1: numbered(50)}


@asynchronous
async def test_records_that_come_while_one_waits_are_handed_out(writer: Writer) -> None:
    topic = writer.topic()
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0)])
        assert await consumer.position((topic, 0)) == 0
        waiting = asyncio.create_task(consumer.poll(PATIENCE_SECONDS))
        await asyncio.to_thread(writer.write, topic, [b"late"])
        assert values(await waiting) == [b"late"]


@asynchronous
async def test_where_reading_begins(writer: Writer) -> None:
    topic = writer.topic()
    now_ms = int(time.time() * 1000)
    writer.write(topic, numbered(4), timestamps=[now_ms - 7_200_000, now_ms - 7_200_000, now_ms - 60_000, now_ms])

    async def first_offset(reset: str) -> int:
        async with consumer_of(writer, auto_offset_reset=reset) as consumer:
            consumer.assign([(topic, 0)])
            return await consumer.position((topic, 0))

    assert await first_offset("earliest") == 0
    assert await first_offset("latest") == 4
    assert await first_offset("by_duration:PT1H") == 2
    async with consumer_of(writer, auto_offset_reset="none") as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(NoOffset, match=f"nothing is committed for {topic}-0"):
            await consumer.poll(PATIENCE_SECONDS)
        consumer.seek((topic, 0), 2)
        assert values(await read(consumer, 2)) == numbered(2, 2)


@asynchronous
async def test_offsets_that_are_not_there(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))
    writer.delete_records(topic, 0, 5)
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0, 2)])
        assert values(await read(consumer, 5)) == numbered(5, 5)
        consumer.seek((topic, 0), 1_000_000)
        assert values(await read(consumer, 5)) == numbered(5, 5)
        assert await consumer.beginning_offsets([(topic, 0)]) == {TopicPartition(topic, 0): 5}
    async with consumer_of(writer, auto_offset_reset="none") as consumer:
        consumer.assign([(topic, 0, 2)])
        with pytest.raises(NoOffset, match=f"{topic}-0 has no offset 2"):
            await consumer.poll(PATIENCE_SECONDS)
        consumer.seek((topic, 0), 9)
        assert values(await read(consumer, 1)) == [b"9"]


@asynchronous
async def test_seeks_by_offset_edge_and_time(writer: Writer) -> None:
    topic = writer.topic(2)
    writer.write(topic, numbered(10), timestamps=range(1000, 11_000, 1000))
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        assert len(await read(consumer, 10)) == 10
        consumer.seek((topic, 0), 7)
        assert await consumer.position((topic, 0)) == 7
        assert values(await read(consumer, 3)) == numbered(3, 7)
        consumer.seek_to_beginning()
        assert values(await read(consumer, 10)) == numbered(10)
        consumer.seek_to_end([(topic, 0)])
        assert await consumer.position((topic, 0)) == 10
        await consumer.seek_to_time(3500)
        assert await consumer.position((topic, 0)) == 3
        assert await consumer.position((topic, 1)) == 0
        assert values(await read(consumer, 7)) == numbered(7, 3)
        found = await consumer.offsets_for_times({(topic, 0): 3500, (topic, 1): 0})
        assert found[TopicPartition(topic, 1)] is None
        at = found[TopicPartition(topic, 0)]
        assert isinstance(at, OffsetAndTimestamp)
        assert (at.offset, at.timestamp) == (3, 4000)
        assert await consumer.end_offsets([(topic, 0), (topic, 1)]) == {
            TopicPartition(topic, 0): 10,
            TopicPartition(topic, 1): 0,
        }


@asynchronous
async def test_paused_partitions_lose_nothing(writer: Writer) -> None:
    topic = writer.topic(2)
    for partition in range(2):
        writer.write(topic, numbered(100), partition=partition)
    async with consumer_of(writer, auto_offset_reset="earliest", max_poll_records=10) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        records = await consumer.poll(PATIENCE_SECONDS)
        partition = records[0].partition
        consumer.pause([(topic, partition)])
        assert consumer.paused == [TopicPartition(topic, partition)]
        others = await read(consumer, 100)
        assert {record.partition for record in others} == {1 - partition}
        consumer.resume()
        assert consumer.paused == []
        assert values(records) + values(await read(consumer, 90)) == numbered(100)


@asynchronous
async def test_a_small_prefetch_reads_everything_within_its_bound(writer: Writer) -> None:
    topic = writer.topic(3)
    for partition in range(3):
        writer.write(topic, [b"x" * 5000 for _ in range(100)], partition=partition)
    settings: dict[str, Any] = {"prefetch_bytes": 100_000, "max_partition_fetch_bytes": 20_000}
    async with consumer_of(writer, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([(topic, partition) for partition in range(3)])
        count = 0
        largest: float = 0
        async for _ in consumer.records(timeout=PATIENCE_SECONDS):
            count += 1
            largest = max(largest, consumer.metrics()["bytes_buffered"])
            if count == 300:
                break
        assert count == 300
        # One batch comes whatever its size: confluent-kafka makes batches of up to 1 MB.
        assert largest <= 1_100_000


@asynchronous
async def test_aborted_and_open_transactions(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, [b"plain"])
    writer.transaction(topic, [b"aborted-1", b"aborted-2"], commit=False)
    writer.transaction(topic, [b"committed"], commit=True)
    open_one = writer.transaction(topic, [b"open"], commit=None)
    writer.write(topic, [b"behind"])
    settings: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "fetch_max_wait_ms": 50,
    }
    async with consumer_of(writer, **settings) as consumer:
        consumer.assign([(topic, 0)])
        assert values(await read(consumer, 2)) == [b"plain", b"committed"]
        assert await consumer.lag() == {TopicPartition(topic, 0): 0}
        await asyncio.to_thread(open_one.commit_transaction, PATIENCE_SECONDS)
        assert values(await read(consumer, 2)) == [b"open", b"behind"]
        await asyncio.to_thread(until_settled, writer.bootstrap)
        consumer.seek_to_beginning()
        assert (await consumer.to_arrow()).column("value").to_pylist() == [b"plain", b"committed", b"open", b"behind"]
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert len(await read(consumer, 6)) == 6


@asynchronous
async def test_deserializers_and_what_they_refuse(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, [b"1", b"x", b"3"])

    def number(topic: str, data: bytes) -> int:
        return int(data)

    settings: dict[str, Any] = {"key_deserializer": "str", "value_deserializer": number}
    async with consumer_of(writer, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([(topic, 0)])
        (first,) = await consumer.poll(PATIENCE_SECONDS)
        assert (first.key, first.value) == ("key", 1)
        with pytest.raises(UndecodableRecord, match=f"{topic}-0 cannot be read at offset 1") as raised:
            await consumer.poll(PATIENCE_SECONDS)
        consumer.seek((topic, 0), raised.value.next_offset)
        assert [record.value for record in await read(consumer, 1)] == [3]


@asynchronous
async def test_topics_and_partitions_can_be_asked_for(writer: Writer) -> None:
    topic = writer.topic(2)
    async with consumer_of(writer) as consumer:
        assert topic in await consumer.topics()
        infos = await consumer.partitions_for(topic)
        assert [info.partition for info in infos] == [0, 1]
        assert all(info.leader in info.in_sync for info in infos)
        with pytest.raises(UnknownTopic, match="there is no topic 'no-such-topic'"):
            await consumer.partitions_for("no-such-topic", timeout=0.5)


@asynchronous
async def test_a_topic_that_is_created_later_is_read_then(writer: Writer) -> None:
    async with consumer_of(writer, auto_offset_reset="earliest", retry_backoff_ms=20) as consumer:
        name = writer.topic(prefix="before")
        later = f"before-{int(name.removeprefix('before-')) + 1}"
        consumer.assign([(later, 0)])
        assert await consumer.poll(0.1) == []
        assert await asyncio.to_thread(writer.topic, 1, "before") == later
        await asyncio.to_thread(writer.write, later, [b"a"])
        assert values(await read(consumer, 1)) == [b"a"]


@asynchronous
async def test_calls_that_do_not_fit_are_refused_by_name(writer: Writer) -> None:
    topic = writer.topic()
    with pytest.raises(ConfigError, match=r"value\.deserializer"):
        consumer_of(writer, value_deserializer=42)
    with pytest.raises(ConfigError, match="interceptor"):
        consumer_of(writer, interceptors=[print])
    consumer = consumer_of(writer)
    with pytest.raises(ConsumerError, match="not started"):
        consumer.assign([(topic, 0)])
    async with consumer:
        with pytest.raises(NotAssigned, match="nothing to read"):
            await consumer.poll()
        with pytest.raises(NotAssigned, match=f"{topic}-0 is not assigned"):
            consumer.seek((topic, 0), 1)
        for call in (consumer.commit(), consumer.committed([(topic, 0)])):
            with pytest.raises(NoGroup, match="group_id"):
                await call
        with pytest.raises(NoGroup, match="subscribe needs a group"):
            consumer.subscribe([topic])
        consumer.assign([(topic, 0)])
        with pytest.raises(ConfigError, match="an offset is"):
            consumer.seek((topic, 0), -1)
    with pytest.raises(ClientClosed):
        await consumer.poll()
    await consumer.close()


@asynchronous
async def test_closing_ends_a_wait(writer: Writer) -> None:
    topic = writer.topic()
    consumer = consumer_of(writer)
    await consumer.start()
    consumer.assign([(topic, 0)])
    waiting = asyncio.create_task(consumer.poll(PATIENCE_SECONDS))
    await asyncio.sleep(0)
    await consumer.close()
    with pytest.raises(ClientClosed):
        await waiting


@asynchronous
async def test_wakeup_ends_a_wait_once(writer: Writer) -> None:
    topic = writer.topic()
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0)])
        waiting = asyncio.create_task(consumer.poll(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        await asyncio.to_thread(consumer.wakeup_from_thread)
        with pytest.raises(Interrupted):
            await waiting
        assert await consumer.poll(0.01) == []


@asynchronous
async def test_buffered_records_can_be_taken_from_another_thread(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(1000))
    async with consumer_of(writer, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        records = await consumer.poll(PATIENCE_SECONDS, 1)
        while len(records) < 1000:
            found = await asyncio.to_thread(consumer.take, 300)
            records += found or await consumer.poll(PATIENCE_SECONDS)
        assert values(records) == numbered(1000)
        assert await consumer.position((topic, 0)) == 1000
