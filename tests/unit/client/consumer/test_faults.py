"""A consumer whose broker refuses, hangs up, restarts, or has something on its disk that cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.consumer import AsyncConsumer
from ottla.client.errors import (
    BrokerError,
    BrokerUnavailable,
    CommitFailed,
    CorruptBatch,
    Fenced,
    LogTruncated,
    NotAuthorized,
    OttlaError,
)
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.records import scan_headers
from ottla.testing import TestBroker

PATIENCE_SECONDS = 60.0
PLACE = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as running:
        running.create_topic("orders")
        yield running


def consumer_of(broker: TestBroker, **settings: Any) -> AsyncConsumer[bytes, bytes]:
    defaults: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 20,
        "retry_backoff_ms": 10,
        "retry_backoff_max_ms": 20,
        "reconnect_backoff_ms": 10,
        "reconnect_backoff_max_ms": 20,
    }
    return AsyncConsumer(broker.bootstrap_servers, **(defaults | settings))


async def values(consumer: AsyncConsumer[bytes, bytes], count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(found) < count:
            found += [record.value for record in await consumer.poll(PATIENCE_SECONDS)]
    return found


@pytest.mark.parametrize(
    ("api", "code"),
    [
        ("FETCH", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("FETCH", ErrorCode.UNKNOWN_TOPIC_ID),
        ("FETCH", ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ("FETCH", ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ("FETCH", ErrorCode.KAFKA_STORAGE_ERROR),
        ("FETCH", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("LIST_OFFSETS", ErrorCode.LEADER_NOT_AVAILABLE),
        ("LIST_OFFSETS", ErrorCode.FENCED_LEADER_EPOCH),
        ("METADATA", ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_errors_that_pass_are_not_noticed(broker: TestBroker, api: str, code: ErrorCode) -> None:
    async def work() -> None:
        broker.faults.error(api, code, times=2)
        async with consumer_of(broker) as consumer:
            consumer.assign([PLACE])
            assert await values(consumer, 2) == [b"a", b"b"]
            broker.faults.error(api, code, times=2)
            await asyncio.to_thread(broker.produce, "orders", "c")
            assert await values(consumer, 1) == [b"c"]

    for value in ("a", "b"):
        broker.produce("orders", value)
    asyncio.run(work())


@pytest.mark.parametrize("api", ["FETCH", "LIST_OFFSETS", "METADATA"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_broker_that_hangs_up_is_asked_again(broker: TestBroker, api: str, when: Any) -> None:
    async def work() -> None:
        broker.faults.disconnect(api, times=2, when=when)
        async with consumer_of(broker) as consumer:
            consumer.assign([PLACE])
            assert await values(consumer, 1) == [b"a"]

    broker.produce("orders", "a")
    asyncio.run(work())


def test_a_broker_that_restarts_is_read_on(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker, group_id="billing", enable_auto_commit=False) as consumer:
            consumer.assign([PLACE])
            assert await values(consumer, 1) == [b"a"]
            for value in ("b", "c"):
                await asyncio.to_thread(broker.restart)
                await asyncio.to_thread(broker.produce, "orders", value)
                assert await values(consumer, 1) == [value.encode()]
                await consumer.commit()
            committed = (await consumer.committed())[PLACE]
            assert committed is not None
            assert committed.offset == 3

    broker.produce("orders", "a")
    asyncio.run(work())


def test_what_a_user_must_know_is_raised_once_and_the_consumer_stays_usable(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker) as consumer:
            consumer.assign([PLACE])
            broker.faults.error("FETCH", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(NotAuthorized, match="orders-0 cannot be fetched"):
                await consumer.poll(PATIENCE_SECONDS)
            assert await consumer.poll(0.05) == []
            consumer.seek(PLACE, 0)
            assert await values(consumer, 1) == [b"a"]

    broker.produce("orders", "a")
    asyncio.run(work())


def test_an_offset_out_of_range_is_reset(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker) as consumer:
            consumer.assign([(*PLACE, 1)])
            assert await values(consumer, 1) == [b"b"]
            broker.faults.error("FETCH", ErrorCode.OFFSET_OUT_OF_RANGE)
            assert await values(consumer, 2) == [b"a", b"b"]

    for value in ("a", "b"):
        broker.produce("orders", value)
    asyncio.run(work())


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_commits_follow_their_coordinator(broker: TestBroker, code: ErrorCode) -> None:
    async def work() -> None:
        async with consumer_of(broker, group_id="billing", enable_auto_commit=False) as consumer:
            consumer.assign([(*PLACE, 0)])
            broker.faults.error("OFFSET_COMMIT", code, times=2)
            await consumer.commit({PLACE: 5})
            broker.faults.error("OFFSET_FETCH", code, times=2)
            assert await consumer.committed() == {PLACE: OffsetAndMetadata(5)}
            broker.faults.disconnect("OFFSET_COMMIT", times=1, when="after")
            await consumer.commit({PLACE: 6})
            assert await consumer.committed() == {PLACE: OffsetAndMetadata(6)}

    asyncio.run(work())


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailed, "this consumer is none"),
        (ErrorCode.ILLEGAL_GENERATION, CommitFailed, "this consumer is none"),
        (ErrorCode.REBALANCE_IN_PROGRESS, CommitFailed, "a rebalance is going on"),
        (ErrorCode.FENCED_INSTANCE_ID, Fenced, "FENCED_INSTANCE_ID"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, NotAuthorized, "group 'billing'"),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, BrokerError, "orders-0"),
    ],
)
def test_commits_that_cannot_be_made_say_why(
    broker: TestBroker, code: ErrorCode, kind: type[OttlaError], text: str
) -> None:
    async def work() -> None:
        async with consumer_of(broker, group_id="billing", enable_auto_commit=False) as consumer:
            consumer.assign([(*PLACE, 0)])
            broker.faults.error("OFFSET_COMMIT", code)
            with pytest.raises(kind, match=text):
                await consumer.commit({PLACE: 5})
            await consumer.commit({PLACE: 6})

    asyncio.run(work())


def test_a_commit_that_finds_nobody_ends_in_time(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker, group_id="billing", enable_auto_commit=False) as consumer:
            consumer.assign([(*PLACE, 0)])
            broker.faults.error("OFFSET_COMMIT", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            with pytest.raises(BrokerUnavailable, match="the offsets were not committed in time"):
                await consumer.commit({PLACE: 5}, timeout=0.1)

    asyncio.run(work())


def test_a_batch_that_rots_on_the_disk_is_named_and_passed_over(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker) as consumer:
            consumer.assign([PLACE])
            assert await values(consumer, 1) == [b"good"]
            for _ in range(2):
                with pytest.raises(CorruptBatch, match="orders-0 cannot be read at offset 1") as raised:
                    await consumer.poll(PATIENCE_SECONDS)
            with pytest.raises(CorruptBatch, match="offset 1"):
                await consumer.to_arrow()
            consumer.seek(PLACE, raised.value.next_offset)
            assert await values(consumer, 1) == [b"after"]

    for value in ("good", "rotten", "after"):
        broker.produce("orders", value)
    broker.stop()
    (log,) = (broker.directory / "orders-0").glob("*.log")
    log.write_bytes(log.read_bytes().replace(b"rotten", b"rotted"))
    broker.start()
    asyncio.run(work())


@pytest.mark.parametrize("reset", ["latest", "none"])
def test_a_log_that_lost_what_was_read_is_noticed(broker: TestBroker, reset: str) -> None:
    """A broker that comes back without its last record gives that offset to another one."""

    def lose_the_last_record() -> None:
        broker.stop()
        (log,) = (broker.directory / "orders-0").glob("*.log")
        whole = log.read_bytes()
        first, second, _ = scan_headers(whole)
        log.write_bytes(whole[: first.size_bytes + second.size_bytes])
        broker.start()
        broker.produce("orders", "another")

    async def work() -> None:
        async with consumer_of(broker, auto_offset_reset=reset) as consumer:
            consumer.assign([(*PLACE, 0)])
            assert await values(consumer, 3) == [b"a", b"b", b"c"]
            await asyncio.to_thread(lose_the_last_record)
            if reset == "none":
                with pytest.raises(LogTruncated, match=r"orders-0 was truncated below offset 3.*up to offset 2"):
                    await consumer.poll(PATIENCE_SECONDS)
                consumer.seek(PLACE, 2)
            assert await values(consumer, 1) == [b"another"]

    for value in ("a", "b", "c"):
        broker.produce("orders", value)
    asyncio.run(work())
