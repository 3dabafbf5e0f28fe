"""A member that leaves is gone, however long the coordinator takes to say so."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.client.membership.reading import PATIENCE_SECONDS, joined, until

from ottla import AsyncAdmin
from ottla.testing import TestBroker

OFTEN_MS = 20
SLOW_SECONDS = 0.5
CLASSIC = {"heartbeat_interval_ms": OFTEN_MS}
CONSUMER = {"group_protocol": "consumer"}


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    often = {
        "group.consumer.heartbeat.interval.ms": str(OFTEN_MS),
        "group.consumer.min.heartbeat.interval.ms": str(OFTEN_MS),
        "group.initial.rebalance.delay.ms": "0",
    }
    with TestBroker(often) as running:
        running.create_topic("orders", partitions=2)
        yield running


@pytest.mark.parametrize(
    ("name", "farewell", "settings"),
    [
        ("classic", "LEAVE_GROUP", CLASSIC),
        ("consumer", "CONSUMER_GROUP_HEARTBEAT", CONSUMER),
        ("static-consumer", "CONSUMER_GROUP_HEARTBEAT", CONSUMER | {"group_instance_id": "one"}),
    ],
)
def test_nobody_joins_again_while_the_answer_to_its_leaving_is_on_its_way(
    broker: TestBroker, name: str, farewell: str, settings: dict[str, Any]
) -> None:
    async def scenario() -> None:
        async with AsyncAdmin(broker.bootstrap_servers) as admin:
            async with joined(broker.bootstrap_servers, name, frozenset({"orders"}), **settings) as member:
                await until(lambda: len(member.assignment) == 2)
                broker.faults.delay(farewell, SLOW_SECONDS, times=None)
            broker.faults.clear()
            described = (await admin.describe_groups(name)).raise_for_errors()
            # A static member's place is kept for it, but nobody who is alive has it.
            left = described[name].members
            assert [one.epoch for one in left] == ([-2] if "group_instance_id" in settings else [])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "heartbeat", "settings"),
    [("classic", "HEARTBEAT", CLASSIC), ("consumer", "CONSUMER_GROUP_HEARTBEAT", CONSUMER)],
)
def test_who_unsubscribes_is_a_member_until_everything_is_given_back(
    broker: TestBroker, name: str, heartbeat: str, settings: dict[str, Any]
) -> None:
    """A listener may take its time, and its commits may need the next epoch, which heartbeats bring."""

    async def scenario() -> None:
        group = f"{name}-unsubscribes"
        async with (
            AsyncAdmin(broker.bootstrap_servers) as admin,
            joined(broker.bootstrap_servers, group, frozenset({"orders"}), **settings) as member,
        ):
            await until(lambda: len(member.assignment) == 2)
            member.reader.gate.clear()
            member.membership.unsubscribe()
            before = broker.faults.requests(heartbeat)
            await until(lambda: broker.faults.requests(heartbeat) > before + 2)
            described = (await admin.describe_groups(group)).raise_for_errors()
            assert [len(one.assignment) for one in described[group].members] == [2]
            member.reader.gate.set()
            await until(lambda: member.assignment == frozenset())
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (await admin.describe_groups(group)).raise_for_errors()[group].members:  # noqa: ASYNC110 - no event says so
                    await asyncio.sleep(0.005)

    asyncio.run(scenario())
