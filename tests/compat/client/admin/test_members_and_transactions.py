"""Groups that are read, and transactions that are open, while an administrator looks at them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.compat.client.admin.others import Confluent
from tests.compat.client.admin.test_admin import code_of, run, write
from tests.compat.client.conftest import Either

from ottla.client.admin import AsyncAdmin, MemberToRemove, NewTopic
from ottla.client.consumer.consumer import AsyncConsumer
from ottla.client.errors import BrokerError, OttlaError
from ottla.client.producer.producer import AsyncProducer
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_is_read(either: Either, topic: str, protocol: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(NewTopic(topic, 2))).raise_for_errors()
        await asyncio.to_thread(write, either, topic, 5)
        group = f"group-{topic}"
        consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            either.bootstrap,
            group_id=group,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            client_id="reader",
        )
        async with consumer:
            consumer.subscribe([topic])
            read = 0
            while read < 5:
                read += len(await consumer.poll(1.0))
            await consumer.commit()
            await _look_at_it(admin, either, group, topic, protocol)
        (offsets,) = (await admin.list_group_offsets(group)).values()
        assert offsets[TopicPartition(topic, 0)].offset == 5
        (await admin.alter_group_offsets(group, {(topic, 0): 1})).raise_for_errors()
        (await admin.delete_groups(group)).raise_for_errors()

    run(either, scenario)


async def _look_at_it(admin: AsyncAdmin, either: Either, group: str, topic: str, protocol: str) -> None:
    described = (await admin.describe_groups(group))[group]
    assert (described.type, described.state, described.coordinator) == (protocol, "Stable", 1)
    (member,) = described.members
    assert member.client_id == "reader"
    assert member.topics == (topic,)
    assert member.assignment == member.target == (TopicPartition(topic, 0), TopicPartition(topic, 1))
    assert described.owner_of((topic, 1)) == member
    theirs = await asyncio.to_thread(Confluent(either.bootstrap).group, group)
    assert theirs["members"] == {member.member_id: list(member.assignment)}
    assert (theirs["assignor"], theirs["coordinator"]) == (described.assignor, described.coordinator)
    listed = await admin.list_groups(states=["Stable"], types=[protocol])
    assert [one.is_simple for one in listed if one.group_id == group] == [False]
    key = TopicPartition(topic, 0)
    refused = await admin.alter_group_offsets(group, {key: 0})
    assert code_of(refused.errors[key]) == ErrorCode.UNKNOWN_MEMBER_ID
    kept = await admin.delete_groups(group)
    assert code_of(kept.errors[group]) == ErrorCode.NON_EMPTY_GROUP
    subscribed = await admin.delete_group_offsets(group, [key])
    assert code_of(subscribed.errors[key]) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    nobody = await admin.remove_members(group, [MemberToRemove("nobody")])
    assert code_of(nobody.errors["nobody"]) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_taken_out(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        group = f"group-{topic}"
        consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            either.bootstrap, group_id=group, group_instance_id="till-1"
        )
        async with consumer:
            consumer.subscribe([topic])
            while not consumer.assignment:
                await consumer.poll(0.1)
        # A static member does not leave when its consumer is closed.
        (member,) = (await admin.describe_groups(group))[group].members
        assert member.instance_id == "till-1"
        removed = await admin.remove_members(group, ["till-1"])
        assert removed["till-1"] is None
        (await admin.delete_groups(group)).raise_for_errors()

    run(either, scenario)


@asynccontextmanager
async def open_transaction(either: Either, topic: str) -> AsyncIterator[AsyncProducer[bytes, bytes]]:
    """A producer that has written one record, and not decided yet."""
    producer: AsyncProducer[bytes, bytes] = AsyncProducer(either.bootstrap, transactional_id=topic)
    async with producer:
        await producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0)
        await producer.flush()
        yield producer


def test_a_transaction_is_seen_and_its_producer_shut_out(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        async with open_transaction(either, topic) as producer:
            await _look_at_the_transaction(admin, topic)
            with pytest.raises(OttlaError):
                await producer.commit_transaction()
        unknown = await admin.describe_transactions("nobody")
        assert code_of(unknown.errors["nobody"]) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    run(either, scenario)


async def _look_at_the_transaction(admin: AsyncAdmin, topic: str) -> None:
    described = (await admin.describe_transactions(topic))[topic]
    key = TopicPartition(topic, 0)
    assert (described.state, described.partitions, described.coordinator) == ("Ongoing", (key,), 1)
    assert described.started_at_ms > 0
    listed = await admin.list_transactions(states=["Ongoing"])
    assert (topic, described.producer_id) in [(one.transactional_id, one.producer_id) for one in listed]
    assert await admin.list_transactions(producer_ids=[described.producer_id + 1000]) == []
    assert [one.transactional_id for one in await admin.list_transactions(pattern=f"{topic}$")] == [topic]
    (state,) = (await admin.describe_producers([key]))[key]
    assert (state.producer_id, state.transaction_start, state.is_in_transaction) == (described.producer_id, 0, True)
    assert (await admin.fence_producers(topic))[topic].epoch > state.epoch


def test_a_transaction_is_ended_in_one_partition(either: Either, topic: str) -> None:
    async def scenario(admin: AsyncAdmin) -> None:
        (await admin.create_topics(topic)).raise_for_errors()
        key = TopicPartition(topic, 0)

        async def stable_end() -> int:
            found = (await admin.list_offsets([key], isolation_level="read_committed"))[key]
            assert found is not None
            return found.offset

        async with open_transaction(either, topic):
            (state,) = (await admin.describe_producers([key]))[key]
            assert await stable_end() == 0
            await admin.abort_transaction(key, state.producer_id, state.epoch, max(state.coordinator_epoch, 0))
            assert await stable_end() == 2
            with pytest.raises(BrokerError):
                await admin.abort_transaction(key, state.producer_id, state.epoch - 1, max(state.coordinator_epoch, 0))

    run(either, scenario)
