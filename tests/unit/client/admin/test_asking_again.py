"""What a call does when the wrong broker is asked, nobody answers, or the time is over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from ottla.client.admin import AsyncAdmin, NewTopic, OffsetSpec, topic_pages
from ottla.client.errors import BrokerError, BrokerUnavailable, ClientClosed, InvalidRequest, OttlaError
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.testing import TestBroker

QUICK = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 10}


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"num.partitions": "2"}) as running:
        yield running


@pytest.fixture(autouse=True)
def no_faults_left(broker: TestBroker) -> Iterator[None]:
    yield
    broker.faults.clear()


@asynccontextmanager
async def connected(broker: TestBroker) -> AsyncIterator[AsyncAdmin]:
    async with AsyncAdmin(broker.bootstrap_servers, config=QUICK) as admin:
        yield admin


Ask = Callable[[AsyncAdmin, str], Awaitable[object]]


async def _create(admin: AsyncAdmin, name: str) -> object:
    return (await admin.create_topics(f"new-{name}")).raise_for_errors()


async def _offsets(admin: AsyncAdmin, name: str) -> object:
    return (await admin.list_offsets([(name, 0)])).raise_for_errors()


async def _group_offsets(admin: AsyncAdmin, name: str) -> object:
    return (await admin.alter_group_offsets(f"group-{name}", {(name, 0): 0})).raise_for_errors()


async def _groups(admin: AsyncAdmin, name: str) -> object:
    return await admin.list_groups()


async def _partitions(admin: AsyncAdmin, name: str) -> object:
    return (await admin.create_partitions({name: 3})).raise_for_errors()


async def _fence(admin: AsyncAdmin, name: str) -> object:
    return (await admin.fence_producers(name)).raise_for_errors()


@pytest.mark.parametrize(
    ("api", "code", "ask"),
    [
        ("CREATE_TOPICS", ErrorCode.NOT_CONTROLLER, _create),
        ("CREATE_TOPICS", ErrorCode.THROTTLING_QUOTA_EXCEEDED, _create),
        ("CREATE_PARTITIONS", ErrorCode.NOT_CONTROLLER, _partitions),
        ("LIST_OFFSETS", ErrorCode.NOT_LEADER_OR_FOLLOWER, _offsets),
        ("LIST_OFFSETS", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _offsets),
        ("OFFSET_COMMIT", ErrorCode.NOT_COORDINATOR, _group_offsets),
        ("OFFSET_COMMIT", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, _group_offsets),
        ("LIST_GROUPS", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, _groups),
        ("INIT_PRODUCER_ID", ErrorCode.CONCURRENT_TRANSACTIONS, _fence),
    ],
)
def test_what_is_temporary_is_asked_again(broker: TestBroker, topic: str, api: str, code: ErrorCode, ask: Ask) -> None:
    async def scenario() -> None:
        broker.create_topic(topic, partitions=2)
        async with connected(broker) as admin:
            broker.faults.error(api, code, times=2)
            before = broker.faults.requests(api)
            await ask(admin, topic)
            assert broker.faults.requests(api) - before == 3

    asyncio.run(scenario())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_breaks_is_made_again(
    broker: TestBroker, topic: str, when: Literal["before", "after"]
) -> None:
    async def scenario() -> None:
        async with connected(broker) as admin:
            broker.faults.disconnect("DESCRIBE_CLUSTER", when=when)
            assert (await admin.describe_cluster()).brokers[0].node_id == 1

    asyncio.run(scenario())


def test_an_answer_that_was_lost_may_leave_the_work_done(broker: TestBroker, topic: str) -> None:
    async def scenario() -> None:
        async with connected(broker) as admin:
            broker.faults.disconnect("CREATE_TOPICS", when="after")
            results = await admin.create_topics(topic)
            error = results.errors[topic]
            assert isinstance(error, BrokerError)
            assert error.code == ErrorCode.TOPIC_ALREADY_EXISTS

    asyncio.run(scenario())


def test_what_is_final_is_asked_once(broker: TestBroker, topic: str) -> None:
    async def scenario() -> None:
        async with connected(broker) as admin:
            broker.faults.error("CREATE_TOPICS", ErrorCode.POLICY_VIOLATION)
            before = broker.faults.requests("CREATE_TOPICS")
            results = await admin.create_topics([topic, f"{topic}-too"])
            assert broker.faults.requests("CREATE_TOPICS") - before == 1
            assert {error.code for error in results.errors.values() if isinstance(error, BrokerError)} == {
                ErrorCode.POLICY_VIOLATION
            }

    asyncio.run(scenario())


def test_only_what_failed_is_asked_again(broker: TestBroker, topic: str) -> None:
    """Partitions that do not exist are asked for a few times, without the one that was answered."""

    async def scenario() -> None:
        broker.create_topic(topic)
        async with connected(broker) as admin:
            results = await admin.list_offsets({(topic, 0): OffsetSpec.EARLIEST, (topic, 7): OffsetSpec.EARLIEST})
            found = results[TopicPartition(topic, 0)]
            assert found is not None
            assert found.offset == 0
            assert [key.partition for key in results.errors] == [7]

    asyncio.run(scenario())


def test_a_call_ends_when_its_time_is_over_with_the_last_error(broker: TestBroker, topic: str) -> None:
    # So long a pause that also the last attempt has time for its answer: without one, that would be the last error.
    seldom = {"retry.backoff.ms": 700, "retry.backoff.max.ms": 700}

    async def scenario() -> None:
        async with AsyncAdmin(broker.bootstrap_servers, config=seldom) as admin:
            broker.faults.error("CREATE_TOPICS", ErrorCode.NOT_CONTROLLER, times=None)
            results = await admin.create_topics(topic, timeout=2.0)
            error = results.errors[topic]
            assert isinstance(error, BrokerError)
            assert error.code == ErrorCode.NOT_CONTROLLER

    asyncio.run(scenario())


def test_nobody_to_connect_to() -> None:
    async def scenario() -> None:
        async with AsyncAdmin("127.0.0.1:1", default_api_timeout_ms=300, config=QUICK):
            pytest.fail("there is no broker on this port")

    with pytest.raises(BrokerUnavailable):
        asyncio.run(scenario())


def test_a_broker_that_goes_away_and_comes_back(topic: str) -> None:
    async def scenario() -> None:
        with TestBroker() as broker:
            async with connected(broker) as admin:
                await admin.create_topics(topic)
                broker.kill()
                listing = asyncio.create_task(admin.list_topics())
                await asyncio.to_thread(broker.start)
                assert [one.name for one in await listing] == [topic]

    asyncio.run(scenario())


def test_a_closed_client_says_so_and_so_does_one_that_never_began(broker: TestBroker) -> None:
    async def scenario() -> None:
        admin = AsyncAdmin(broker.bootstrap_servers)
        with pytest.raises(ClientClosed, match="async with"):
            await admin.list_topics()
        await admin.start()
        assert await admin.describe_features()
        await admin.close()
        await admin.close()
        with pytest.raises(ClientClosed, match="make a new one"):
            await admin.list_topics()
        with pytest.raises(ClientClosed):
            await admin.start()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.list_topics(timeout=0),
        lambda admin: admin.create_topics(["a", "b", "a"]),
        lambda admin: admin.list_offsets({("a", 0): -7}),
        lambda admin: admin.list_offsets([("a", 0)], isolation_level="read_all"),
        lambda admin: admin.alter_group_offsets("g", {("a", 0): -1}),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(
    broker: TestBroker, call: Callable[[AsyncAdmin], Awaitable[object]]
) -> None:
    async def scenario() -> None:
        async with connected(broker) as admin:
            with pytest.raises(InvalidRequest):
                await call(admin)

    asyncio.run(scenario())


def test_many_topics_go_in_several_requests(broker: TestBroker, topic: str) -> None:
    async def scenario() -> None:
        async with connected(broker) as admin:
            before = broker.faults.requests("CREATE_TOPICS")
            wanted = [NewTopic(f"{topic}-{number}", partitions=2000) for number in range(4)]
            results = await admin.create_topics(wanted, validate_only=True)
            assert results.errors == {}
            assert broker.faults.requests("CREATE_TOPICS") - before == 2

    asyncio.run(scenario())


def test_large_topics_are_described_in_pages(broker: TestBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_pages, "PARTITIONS_PER_PAGE", 4)

    async def scenario() -> None:
        async with connected(broker) as admin:
            names = [f"{topic}-{number}" for number in range(3)]
            (await admin.create_topics([NewTopic(name, partitions=3) for name in names])).raise_for_errors()
            before = broker.faults.requests("DESCRIBE_TOPIC_PARTITIONS")
            described = (await admin.describe_topics(names)).raise_for_errors()
            assert broker.faults.requests("DESCRIBE_TOPIC_PARTITIONS") - before == 3
            for name in names:
                assert [one.partition for one in described[name].partitions] == list(range(3))
            results = await admin.delete_topics(names, wait=True)
            assert results.errors == {}

    asyncio.run(scenario())


def test_progress_is_told_and_what_it_raises_ends_nothing(broker: TestBroker, topic: str) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        raise RuntimeError("a callback with a defect")

    async def scenario() -> None:
        async with connected(broker) as admin:
            (await admin.create_topics([topic, f"{topic}-2"])).raise_for_errors()
            (await admin.delete_topics([topic, f"{topic}-2"], wait=True, progress=progress)).raise_for_errors()

    asyncio.run(scenario())
    assert told[0] == (0, 2)
    assert told[-1] == (2, 2)


def test_errors_are_always_of_the_clients_own_kind(broker: TestBroker) -> None:
    async def scenario() -> None:
        async with connected(broker) as admin:
            results = await admin.create_topics(["x" * 40_000])
            assert all(isinstance(error, OttlaError) for error in results.errors.values())
            assert len(results.errors) == 1

    asyncio.run(scenario())
