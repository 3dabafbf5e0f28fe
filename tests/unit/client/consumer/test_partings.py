"""What becomes of records and partitions when a consumer and its group part: by an error, a rebalance, or a close."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from ottla import AsyncAdmin, Consumer
from ottla.client.consumer import AsyncConsumer
from ottla.client.consumer.positions import Phase
from ottla.client.errors import NotAuthorized
from ottla.client.types import TopicPartition
from ottla.records import scan_headers
from ottla.testing import TestBroker

PATIENCE_SECONDS = 60.0
OFTEN_MS = 20
PLACE = TopicPartition("orders", 0)
PROTOCOLS = ("classic", "consumer")


class WorkFailed(Exception):
    """What the user's own code raises."""


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, list[str]]] = []

    def on_revoked(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("revoked", sorted({one.topic for one in partitions})))

    def on_assigned(self, partitions: list[TopicPartition]) -> None:
        self.heard.append(("assigned", sorted({one.topic for one in partitions})))


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.heartbeat.interval.ms": str(OFTEN_MS),
        "group.consumer.min.heartbeat.interval.ms": str(OFTEN_MS),
        "auto.create.topics.enable": "false",
    }
    with TestBroker(settings) as running:
        running.create_topic("orders")
        for value in "abc":
            running.produce("orders", value)
        yield running


def settings_of(protocol: str = "classic", **settings: Any) -> dict[str, Any]:
    often = {"heartbeat_interval_ms": OFTEN_MS} if protocol == "classic" else {}
    defaults = {"group_id": "g", "group_protocol": protocol, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}
    return defaults | often | {"auto_commit_interval_ms": 600_000} | settings


def consumer_of(broker: TestBroker, protocol: str = "classic", **settings: Any) -> AsyncConsumer[bytes, bytes]:
    return AsyncConsumer(broker.bootstrap_servers, **settings_of(protocol, **settings))


async def polled(consumer: AsyncConsumer[bytes, bytes], count: int) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(found) < count:
            found += [(one.topic, one.partition, one.offset) for one in await consumer.poll(1.0)]
    return found


async def committed(broker: TestBroker, group_id: str = "g") -> int | None:
    async with AsyncConsumer(broker.bootstrap_servers, group_id=group_id) as reader:
        found = (await reader.committed([PLACE]))[PLACE]
        return None if found is None else found.offset


def run(work: Any) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, 2 * PATIENCE_SECONDS)

    asyncio.run(bounded())


# Work that failed

WAYS = ("poll", "batches", "tables", "records")


async def fail_at_work(consumer: AsyncConsumer[bytes, bytes], way: str, at_offset: int = 0) -> None:
    async with consumer:
        consumer.subscribe(["orders"])
        if way == "poll":
            await polled(consumer, 1)
            raise WorkFailed
        given: Any = getattr(consumer, way)()
        offset = 0
        async for _ in given:
            if offset == at_offset:
                raise WorkFailed
            offset += 1


def fail_without_asyncio(broker: TestBroker) -> None:
    with Consumer(broker.bootstrap_servers, **settings_of()) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.poll(1.0):
            pass
        raise WorkFailed


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("way", WAYS)
def test_records_whose_work_failed_are_not_committed(broker: TestBroker, way: str, protocol: str) -> None:
    async def work() -> None:
        with pytest.raises(WorkFailed):
            await fail_at_work(consumer_of(broker, protocol), way)
        assert not await committed(broker)

    run(work())


def test_records_whose_work_failed_are_not_committed_without_asyncio(broker: TestBroker) -> None:
    with pytest.raises(WorkFailed):
        fail_without_asyncio(broker)
    with Consumer(broker.bootstrap_servers, group_id="g") as reader:
        found = reader.committed([PLACE])[PLACE]
    assert found is None or found.offset == 0


def test_what_was_asked_beyond_is_committed_where_the_work_after_it_failed(broker: TestBroker) -> None:
    async def work() -> None:
        with pytest.raises(WorkFailed):
            await fail_at_work(consumer_of(broker), "records", at_offset=1)
        assert await committed(broker) == 1

    run(work())


# Rebalances while the user works


async def until(is_true: Any) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_true():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


def test_a_member_that_was_thrown_out_while_it_worked_reads_what_it_gets_next(broker: TestBroker) -> None:
    """The group wants partitions back, and then forgets the member: what it wanted back is no concern any more."""
    seen: list[tuple[str, int, int]] = []

    async def keep_reading(consumer: AsyncConsumer[bytes, bytes]) -> None:
        while True:
            seen.extend((one.topic, one.partition, one.offset) for one in await consumer.poll(0.05))

    async def work() -> None:
        broker.create_topic("two", partitions=2)
        for partition in range(2):
            broker.produce("two", "old", partition=partition)
        often = {"partition_assignment_strategy": "range"}
        async with (
            consumer_of(broker, **often) as slow,
            consumer_of(broker, **often) as other,
            AsyncAdmin(broker.bootstrap_servers) as admin,
        ):
            slow.subscribe(["two"])
            await polled(slow, 2)
            membership = slow._core.membership
            assert membership is not None
            other.subscribe(["two"])
            reading = asyncio.create_task(keep_reading(other))
            await until(lambda: slow._core.attention.is_wanted)
            thrown_out = membership.generation.member_id
            (await admin.remove_members("g")).raise_for_errors()
            await until(lambda: membership.generation.is_member and membership.generation.member_id != thrown_out)
            await until(lambda: len(membership.assignment) == 1 and len(other.assignment) == 1)
            slow_reading = asyncio.create_task(keep_reading(slow))
            for partition in range(2):
                await asyncio.to_thread(broker.produce, "two", "new", partition=partition)
            await until(lambda: {("two", 0, 1), ("two", 1, 1)} <= set(seen))
            for task in (reading, slow_reading):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    run(work())


async def next_of(records: Any) -> Any:
    return await anext(records)


@pytest.mark.parametrize("is_broken_off", [False, True])
def test_the_record_before_is_done_when_the_next_is_asked_for_in_a_rebalance(
    broker: TestBroker, is_broken_off: bool
) -> None:
    """Whoever gets the partition next does not get that record once more."""

    async def work() -> None:
        async with consumer_of(broker) as consumer, consumer_of(broker, group_id="g") as other:
            consumer.subscribe(["orders"])
            records = consumer.records()
            assert [(await anext(records)).offset for _ in range(2)] == [0, 1]
            other.subscribe(["orders"])
            joining = asyncio.create_task(other.poll(PATIENCE_SECONDS))
            await until(lambda: consumer._core.attention.is_wanted)
            if is_broken_off:
                await consumer.unsubscribe()
            else:
                asking = asyncio.create_task(next_of(records))
                await until(lambda: asking.done() or not consumer.assignment)
                asking.cancel()
                await asyncio.wait([asking])
            await consumer.close()
            await asyncio.to_thread(broker.produce, "orders", "d")
            assert (await joining)[0].offset in (2, 3), "what was done came again"

    run(work())


def test_an_iterator_that_was_left_is_done_with_when_the_consumer_is_polled(broker: TestBroker) -> None:
    async def work() -> None:
        async with consumer_of(broker, auto_commit_interval_ms=10) as consumer:
            consumer.assign([PLACE])
            async for record in consumer:
                if record.offset == 2:
                    break
            assert not await consumer.poll(0)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    found = (await consumer.committed())[PLACE]
                    if found is not None and found.offset == 3:
                        break

    run(work())


# Commits that are refused


async def members_of(broker: TestBroker, group_id: str = "g") -> int:
    async with AsyncAdmin(broker.bootstrap_servers) as admin:
        return len((await admin.describe_groups(group_id)).raise_for_errors()[group_id].members)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_consumer_leaves_its_group_also_where_its_commit_is_refused(broker: TestBroker, protocol: str) -> None:
    async def work() -> None:
        listener = Listener()
        consumer = consumer_of(broker, protocol)
        await consumer.start()
        consumer.subscribe(["orders"], listener=listener)
        await polled(consumer, 3)
        broker.faults.error("OFFSET_COMMIT", "TOPIC_AUTHORIZATION_FAILED", times=None)
        with pytest.raises(NotAuthorized, match="orders-0 was not committed"):
            await consumer.close()
        assert await members_of(broker) == 0
        assert listener.heard == [("assigned", ["orders"]), ("revoked", ["orders"])]

    run(work())


def test_a_close_ends_in_its_time_where_no_commit_is_taken(broker: TestBroker) -> None:
    async def work() -> None:
        consumer = consumer_of(broker)
        await consumer.start()
        consumer.subscribe(["orders"])
        await polled(consumer, 3)
        broker.faults.error("OFFSET_COMMIT", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
        async with asyncio.timeout(20.0):
            await consumer.close(timeout=0.2)

    run(work())


def test_a_close_ends_in_its_time_where_a_poll_that_was_cancelled_began_a_commit(broker: TestBroker) -> None:
    async def work() -> None:
        consumer = consumer_of(broker)
        await consumer.start()
        async with consumer_of(broker) as other:
            consumer.subscribe(["orders"])
            await polled(consumer, 3)
            broker.faults.error("OFFSET_COMMIT", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
            other.subscribe(["orders"])
            joining = asyncio.create_task(other.poll(PATIENCE_SECONDS))
            await until(lambda: consumer._core.attention.is_wanted)
            polling = asyncio.create_task(consumer.poll(PATIENCE_SECONDS))
            await until(lambda: broker.faults.requests("OFFSET_COMMIT"))
            for task in (polling, joining):
                task.cancel()
                await asyncio.wait([task])
            async with asyncio.timeout(20.0):
                await consumer.close(timeout=0.2)
            broker.faults.clear()
        assert await members_of(broker) == 0

    run(work())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_was_deleted_is_given_back(broker: TestBroker, protocol: str) -> None:
    """Nobody waits for its offsets to be committed, and no call fails for it."""

    async def work() -> None:
        broker.create_topic("gone")
        broker.produce("gone", "x")
        listener = Listener()
        async with (
            consumer_of(broker, protocol, metadata_max_age_ms=50) as consumer,
            AsyncAdmin(broker.bootstrap_servers) as admin,
        ):
            consumer.subscribe(["orders", "gone"], listener=listener)
            await polled(consumer, 4)
            (await admin.delete_topics(["gone"])).raise_for_errors()
            async with asyncio.timeout(PATIENCE_SECONDS):
                while consumer.assignment != [PLACE]:
                    await consumer.poll(0.02)
            given_back = {topic for what, topics in listener.heard if what == "revoked" for topic in topics}
            assert "gone" in given_back
            await asyncio.to_thread(broker.produce, "orders", "d")
            assert await polled(consumer, 1) == [("orders", 0, 3)]

    run(work())


# A log that was cut


def lose_the_last_record(broker: TestBroker) -> None:
    broker.stop()
    (log,) = (broker.directory / "orders-0").glob("*.log")
    whole = log.read_bytes()
    log.write_bytes(whole[: sum(header.size_bytes for header in scan_headers(whole)[:2])])
    broker.start()
    broker.produce("orders", "another")


@asynccontextmanager
async def reader_of_a_log_that_is_cut(
    broker: TestBroker, handed_out: int
) -> AsyncIterator[AsyncConsumer[bytes, bytes]]:
    """The user works on some of three records; the last of those is not in the log any more, but another one is."""
    async with consumer_of(broker, reconnect_backoff_ms=10, retry_backoff_ms=10) as consumer:
        consumer.assign([PLACE])
        assert len(await consumer.poll(PATIENCE_SECONDS, handed_out)) == handed_out
        state = consumer._core.assignment.state(PLACE)
        await until(lambda: state.fetch_offset == 3)
        version = state.version
        await asyncio.to_thread(lose_the_last_record, broker)
        await until(lambda: state.version > version and state.phase is Phase.FETCHING and state.fetch_offset == 3)
        yield consumer


@pytest.mark.parametrize("handed_out", [1, 3], ids=["what-follows", "what-it-got"])
def test_a_record_that_is_worked_on_is_not_done_because_a_new_leader_lacks_some(
    broker: TestBroker, handed_out: int
) -> None:
    """What was buffered behind it is given up; that the user came back is not said by anybody."""

    async def work() -> None:
        with pytest.raises(WorkFailed):
            async with reader_of_a_log_that_is_cut(broker, handed_out):
                raise WorkFailed
        assert not await committed(broker)

    run(work())


def test_who_comes_back_is_done_up_to_where_the_log_was_cut(broker: TestBroker) -> None:
    async def work() -> None:
        async with reader_of_a_log_that_is_cut(broker, 3) as consumer:
            consumer.pause([PLACE])
            assert not await consumer.poll(0)
            await consumer.close(settled_only=True)
        assert await committed(broker) == 2

    run(work())


def test_what_a_new_leader_has_in_place_of_it_is_read(broker: TestBroker) -> None:
    async def work() -> None:
        async with reader_of_a_log_that_is_cut(broker, 3) as consumer:
            assert [(record.offset, record.value) for record in await consumer.poll(PATIENCE_SECONDS)] == [
                (2, b"another")
            ]
        assert await committed(broker) == 3

    run(work())
