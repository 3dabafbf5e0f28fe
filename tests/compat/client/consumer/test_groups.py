"""A consumer with its group: what a rebalance does to it, with both protocols."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest
from tests.compat.client.consumer.test_reading import numbered, read, values
from tests.compat.client.consumer.writing import PATIENCE_SECONDS, Writer, asynchronous

from ottla.client.consumer import AsyncConsumer
from ottla.client.errors import ConsumerError, PollIntervalExceeded
from ottla.client.types import TopicPartition

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def member(writer: Writer, topic: str, protocol: str = "classic", **settings: Any) -> AsyncConsumer[Any, Any]:
    defaults: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 50,
        "group_protocol": protocol,
    }
    if protocol == "classic":
        defaults["heartbeat_interval_ms"] = 200
    return AsyncConsumer(writer.bootstrap, group_id=f"group-of-{topic}", **(defaults | settings))


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, list[int]]] = []

    def on_assigned(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("assigned", [partition.partition for partition in partitions]))

    async def on_revoked(self, partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(0)
        self.heard.append(("revoked", [partition.partition for partition in partitions]))


async def until_assigned(count: int, *consumers: AsyncConsumer[Any, Any]) -> list[Any]:
    """Poll until each has that many partitions; the records that came meanwhile."""
    records: list[Any] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while any(len(consumer.assignment) != count for consumer in consumers):
            for consumer in consumers:
                records += await consumer.poll(0.02)
    return records


@PROTOCOLS
@asynchronous
async def test_a_member_reads_its_topics_and_the_next_one_goes_on(writer: Writer, protocol: str) -> None:
    topic = writer.topic(2)
    writer.write(topic, numbered(50))
    listener = Listener()
    async with member(writer, topic, protocol) as consumer:
        consumer.subscribe([topic], listener=listener)
        assert consumer.subscription == {topic}
        assert values(await read(consumer, 50)) == numbered(50)
        assert consumer.assignment == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        identity = consumer.group_metadata()
        assert identity.member_id
        assert identity.generation >= 0
        with pytest.raises(ConsumerError, match="unsubscribe before"):
            consumer.assign([(topic, 0)])
    assert ("assigned", [0, 1]) in listener.heard
    assert listener.heard[-1] == ("revoked", [0, 1])
    writer.write(topic, [b"more"])
    async with member(writer, topic, protocol) as following:
        following.subscribe(topic)
        assert values(await read(following, 1)) == [b"more"]


@PROTOCOLS
@asynchronous
async def test_partitions_change_hands_without_a_record_lost_or_twice(writer: Writer, protocol: str) -> None:
    topic = writer.topic(4)
    for partition in range(4):
        writer.write(topic, numbered(100, partition * 100), partition=partition)
    settings: dict[str, Any] = {"max_poll_records": 10}
    async with (
        member(writer, topic, protocol, **settings) as first,
        member(writer, topic, protocol, **settings) as second,
    ):
        first.subscribe([topic])
        records = await first.poll(PATIENCE_SECONDS)
        second.subscribe([topic])
        records += await until_assigned(2, first, second)
        assert sorted(first.assignment + second.assignment) == [TopicPartition(topic, number) for number in range(4)]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(records) < 400:
                records += await first.poll(0.02) + await second.poll(0.02)
        assert Counter(values(records)) == Counter(numbered(400))
        await second.close()
        records = await until_assigned(4, first)
        assert records == []


@asynchronous
async def test_a_pattern_reads_what_matches_also_what_comes_later(writer: Writer) -> None:
    first = writer.topic(prefix="pattern-a")
    writer.topic(prefix="other-pattern-a")
    writer.write(first, [b"1"])
    async with member(writer, first, metadata_max_age_ms=200) as consumer:
        consumer.subscribe(re.compile(r"pattern-a-\d+"))
        assert values(await read(consumer, 1)) == [b"1"]
        second = await asyncio.to_thread(writer.topic, 1, "pattern-a")
        await asyncio.to_thread(writer.write, second, [b"2"])
        (record,) = await consumer.poll(PATIENCE_SECONDS)
        assert (record.topic, record.value) == (second, b"2")
        assert consumer.assignment == sorted([TopicPartition(first, 0), TopicPartition(second, 0)])


@PROTOCOLS
@asynchronous
async def test_unsubscribe_gives_everything_back(writer: Writer, protocol: str) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(5))
    async with member(writer, topic, protocol) as consumer:
        consumer.subscribe([topic])
        await read(consumer, 5)
        await consumer.unsubscribe()
        assert consumer.assignment == []
        assert consumer.subscription is None
        found = (await consumer.committed([(topic, 0)]))[TopicPartition(topic, 0)]
        assert found is not None
        assert found.offset == 5
        consumer.assign([(topic, 0, 2)])
        assert values(await read(consumer, 3)) == numbered(3, 2)


@PROTOCOLS
@asynchronous
async def test_a_bounded_read_waits_for_the_assignment(writer: Writer, protocol: str) -> None:
    topic = writer.topic(2)
    writer.write(topic, numbered(5))
    async with member(writer, topic, protocol) as consumer:
        consumer.subscribe([topic])
        assert (await consumer.to_arrow()).column("value").to_pylist() == numbered(5)


@asynchronous
async def test_a_listener_may_seek_where_it_wants_to_begin(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))

    class Seeking:
        def on_assigned(self, partitions: list[TopicPartition]) -> None:
            for partition in partitions:
                consumer.seek(partition, 7)

    async with member(writer, topic) as consumer:
        consumer.subscribe([topic], listener=Seeking())
        assert values(await read(consumer, 3)) == numbered(3, 7)


@asynchronous
async def test_a_listener_may_commit_what_is_taken_away_also_when_closing(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(10))

    class Committing:
        async def on_revoked(self, partitions: list[TopicPartition]) -> None:
            await consumer.commit(dict.fromkeys(partitions, 6))

    async with member(writer, topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], listener=Committing())
        await read(consumer, 10)
    async with member(writer, topic) as following:
        following.subscribe([topic])
        assert values(await read(following, 4)) == numbered(4, 6)


@asynchronous
async def test_slow_work_on_single_records_is_no_absence(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(30))
    settings: dict[str, Any] = {"max_poll_interval_ms": 2500, "session_timeout_ms": 6000}
    async with member(writer, topic, **settings) as consumer:
        consumer.subscribe([topic])
        seen = []
        async for record in consumer:
            await asyncio.sleep(0.1)
            seen.append(record.value)
            if len(seen) == 30:
                break
        assert seen == numbered(30)
        assert consumer.metrics()["rebalance_count"] == 1


@asynchronous
async def test_user_code_that_stays_away_is_told_and_reads_again(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(3))
    settings: dict[str, Any] = {"max_poll_interval_ms": 300, "session_timeout_ms": 6000}
    async with member(writer, topic, **settings) as consumer:
        consumer.subscribe([topic])
        assert values(await consumer.poll(PATIENCE_SECONDS)) == numbered(3)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while consumer.assignment:
                await consumer.committed()
        with pytest.raises(PollIntervalExceeded, match=r"max\.poll\.interval"):
            await consumer.poll(PATIENCE_SECONDS)
        assert values(await consumer.poll(PATIENCE_SECONDS)) == numbered(3)
