"""Transactions that meet trouble: an aborted one leaves nothing behind, and the next one is not harmed by it."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.waiting import tries

from ottla import Admin
from ottla.client.errors import MustAbort, NotAuthorized, TransactionAborted, Unfinished
from ottla.client.network import Network
from ottla.client.producer.producer import AsyncProducer
from ottla.client.producer.transaction_requests import _worst
from ottla.protocol.errors import ErrorCode
from ottla.testing import TestBroker

QUICK: dict[str, Any] = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5}

# How offsets get into a transaction, in each version.
OFFSETS = [(1, "ADD_OFFSETS_TO_TXN"), (1, "TXN_OFFSET_COMMIT"), (2, "TXN_OFFSET_COMMIT")]


class Limited:
    """A network whose cluster has agreed on an older version of transactions."""

    def __init__(self, network: Network, version: int) -> None:
        self._network = network
        self._version = version

    def feature_level(self, name: str) -> int:
        return min(self._network.feature_level(name), self._version)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def producer_of(broker: TestBroker, version: int, **settings: Any) -> AsyncProducer[bytes, bytes]:
    given = {**QUICK, "transactional_id": "x", **settings}
    producer: AsyncProducer[bytes, bytes] = AsyncProducer(broker.bootstrap_servers, **given)
    assert producer.engine.transactions is not None
    producer.engine.transactions._network = Limited(producer.engine.transactions._network, version)
    return producer


async def commit_one(producer: AsyncProducer[bytes, bytes], value: bytes) -> None:
    async with producer.transaction():
        producer.send("t", value)


async def until(holds: Callable[[], bool]) -> None:
    for _ in tries(pause_seconds=0):
        if holds():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never came to that")


def values_of(broker: TestBroker) -> list[bytes | None]:
    return [record.value for record in broker.records("t")]


def open_transactions(broker: TestBroker) -> list[str]:
    with Admin(broker.bootstrap_servers) as admin:
        return [one.transactional_id for one in admin.list_transactions(states=["Ongoing"])]


def committed(broker: TestBroker) -> dict[Any, Any]:
    with Admin(broker.bootstrap_servers) as admin:
        return dict(admin.list_group_offsets(["g"])["g"])


@pytest.mark.parametrize("how", ["not in time", "cancelled"])
@pytest.mark.parametrize(("version", "api"), OFFSETS)
def test_offsets_of_an_aborted_transaction_are_not_committed_with_the_next(
    ottla: TestBroker, version: int, api: str, how: str
) -> None:
    """The broker took them, and nobody heard of it."""
    ottla.create_topic("t")

    async def lose_offsets(producer: AsyncProducer[bytes, bytes]) -> None:
        offsets = {("t", 0): 42}
        if how == "cancelled":
            sending = asyncio.ensure_future(producer.send_offsets_to_transaction(offsets, "g"))
            await until(lambda: ottla.faults.requests(api) > 1)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        else:
            with pytest.raises(Unfinished, match="abort"):
                await producer.send_offsets_to_transaction(offsets, "g", timeout=0.2)
        with pytest.raises(MustAbort):
            await producer.commit_transaction()

    async def run() -> None:
        async with producer_of(ottla, version) as producer:
            await producer.init_transactions()
            await commit_one(producer, b"1")
            ottla.faults.disconnect(api, times=None, when="after")
            producer.begin_transaction()
            await lose_offsets(producer)
            ottla.faults.clear()
            await producer.abort_transaction()
            assert await asyncio.to_thread(open_transactions, ottla) == []
            await commit_one(producer, b"2")

    asyncio.run(run())
    assert committed(ottla) == {}
    assert values_of(ottla) == [b"1", b"2"]


@pytest.mark.parametrize(("version", "api"), OFFSETS)
@pytest.mark.parametrize("commits_before", [0, 1])
def test_offsets_that_were_refused_harm_no_other_transaction(
    ottla: TestBroker, version: int, api: str, commits_before: int
) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with producer_of(ottla, version) as producer:
            await producer.init_transactions()
            for _ in range(commits_before):
                await commit_one(producer, b"before")
            ottla.faults.error(api, "GROUP_AUTHORIZATION_FAILED")
            with pytest.raises(NotAuthorized):
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({("t", 0): 42}, "g")
            await commit_one(producer, b"after")

    asyncio.run(run())
    assert committed(ottla) == {}
    assert values_of(ottla) == [b"before"] * commits_before + [b"after"]


def test_partitions_that_were_added_without_an_answer_and_refused_then_leave_nothing_open(ottla: TestBroker) -> None:
    """It is aborted as any other: Apache Kafka fences who asks for a new epoch while a transaction is open."""
    ottla.create_topic("t")

    async def run() -> None:
        async with producer_of(ottla, 1) as producer:
            await producer.init_transactions()
            ottla.faults.disconnect("ADD_PARTITIONS_TO_TXN", when="after")
            ottla.faults.error("ADD_PARTITIONS_TO_TXN", "TOPIC_AUTHORIZATION_FAILED")
            with pytest.raises(MustAbort, match="TOPIC_AUTHORIZATION_FAILED"):
                await commit_one(producer, b"refused")
            assert ottla.faults.requests("END_TXN") == 1
            assert await asyncio.to_thread(open_transactions, ottla) == []
            await commit_one(producer, b"next")

    asyncio.run(run())
    assert values_of(ottla) == [b"next"]


def test_commit_says_at_once_that_a_partition_was_refused(ottla: TestBroker) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with producer_of(ottla, 1) as producer:
            await producer.init_transactions()
            await commit_one(producer, b"1")
            ottla.faults.error("ADD_PARTITIONS_TO_TXN", "TOPIC_AUTHORIZATION_FAILED")
            producer.begin_transaction()
            delivery = producer.send("t", b"2")
            with pytest.raises(MustAbort, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.commit_transaction(timeout=10)
            assert isinstance(delivery.exception(), TransactionAborted)
            await producer.abort_transaction()
            await commit_one(producer, b"3")

    asyncio.run(run())
    assert values_of(ottla) == [b"1", b"3"]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_batch_that_waited_for_its_retry_harms_only_the_transaction_that_is_aborted(
    ottla: TestBroker, version: int, is_written: bool
) -> None:
    ottla.create_topic("t")

    async def run() -> None:
        async with producer_of(ottla, version, retry_backoff_ms=30_000, retry_backoff_max_ms=30_000) as producer:
            await producer.init_transactions()
            await commit_one(producer, b"1")
            if is_written:
                ottla.faults.disconnect("PRODUCE", when="after")
            else:
                ottla.faults.error("PRODUCE", "REQUEST_TIMED_OUT")
            producer.begin_transaction()
            delivery = producer.send("t", b"2")
            await until(lambda: producer.metrics()["record-retry-total"] == 1)
            await producer.abort_transaction()
            assert isinstance(delivery.exception(), TransactionAborted)
            await commit_one(producer, b"3")

    asyncio.run(run())
    assert values_of(ottla) == [b"1", *([b"2"] if is_written else []), b"3"]


def test_a_batch_whose_fate_nobody_learns_while_it_is_aborted_harms_no_other_transaction(
    ottla: TestBroker, version: int
) -> None:
    """Its last attempt is under way when the abort begins, and is never answered."""
    ottla.create_topic("t")

    async def run() -> None:
        async with producer_of(ottla, version, retries=1, request_timeout_ms=200) as producer:
            await producer.init_transactions()
            await commit_one(producer, b"1")
            ottla.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS")
            ottla.faults.delay("PRODUCE", 30)
            producer.begin_transaction()
            delivery = producer.send("t", b"2")
            await until(lambda: ottla.faults.pending("PRODUCE") == 0)
            await producer.abort_transaction()
            assert delivery.exception() is not None
            await commit_one(producer, b"3")

    asyncio.run(run())
    assert values_of(ottla) == [b"1", b"2", b"3"]


def test_what_another_try_may_heal_is_tried_again_wherever_its_partition_stands() -> None:
    final, passing, untried = (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    )
    assert {_worst(codes) for codes in itertools.permutations([ErrorCode.NONE, untried, passing])} == {passing}
    assert {_worst(codes) for codes in itertools.permutations([untried, passing, final])} == {final}
    assert _worst([ErrorCode.NONE, untried]) is untried
    assert _worst([ErrorCode.NONE]) is _worst([]) is ErrorCode.NONE
