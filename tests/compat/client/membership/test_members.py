"""Members of groups on Ottla and on Apache Kafka: what a consumer is told, and when.

Scenarios that mostly wait are played at the same time, each with a topic and a group of its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.compat.client.membership.conftest import create_topics, grow_topic
from tests.compat.clients.groups.sessions import QUIET_MS, SESSION_MS, set_sessions
from tests.unit.client.membership.reading import PATIENCE_SECONDS, Joined, joined, owns_all, until

from ottla import AsyncAdmin
from ottla.client.errors import BrokerError, Fenced, PollIntervalExceeded
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

PARTITIONS = 4
KINDS = ("range", "roundrobin", "sticky", "cooperative-sticky", "consumer")
BOTH_PROTOCOLS = ("cooperative-sticky", "consumer")
Scenario = Callable[[str, str, str], Awaitable[None]]


def member_settings(kind: str, **more: Any) -> dict[str, Any]:
    usual = {"metadata_max_age_ms": 300, "max_poll_interval_ms": 60_000}
    if kind == "consumer":
        return {**usual, "group_protocol": "consumer", **more}
    session = {"session_timeout_ms": QUIET_MS, "heartbeat_interval_ms": 100}
    return {**usual, **session, "partition_assignment_strategy": [kind], **more}


async def soon_missed(address: str, group: str, kind: str, session_ms: int = SESSION_MS) -> dict[str, Any]:
    """For scenarios about the end of a session."""
    if kind != "consumer":
        return member_settings(kind, session_timeout_ms=session_ms)
    await asyncio.to_thread(set_sessions, address, [group], session_ms)
    return member_settings(kind)


def has_everything(member: Joined, count: int = PARTITIONS) -> bool:
    return len(member.assignment) == count


def play(address: str, name: str, *scenarios: tuple[Scenario, str]) -> None:
    """All of them at once. Each has a topic of its own, with the name of its group."""
    names = [f"{name}-{number}" for number in range(len(scenarios))]
    create_topics(address, PARTITIONS, *names)

    async def one(scenario: Scenario, kind: str, own_name: str) -> None:
        try:
            await scenario(address, own_name, kind)
        except BaseException as error:
            error.add_note(f"in {scenario.__name__} with {kind}")
            raise

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for (scenario, kind), own_name in zip(scenarios, names, strict=True):
                group.create_task(one(scenario, kind, own_name))

    asyncio.run(all_of_them())


async def share(address: str, name: str, kind: str) -> None:
    topics = frozenset({name})
    async with joined(address, name, topics, **member_settings(kind)) as first:
        await until(lambda: has_everything(first))
        async with joined(address, name, topics, **member_settings(kind)) as second:
            await until(owns_all(PARTITIONS, first, second))
            given_back = [parts for what, parts in first.reader.events if what == "revoke"]
            assert second.assignment <= frozenset().union(*given_back)
            if kind in BOTH_PROTOCOLS:
                assert given_back == [second.assignment]
        await until(lambda: has_everything(first))
    assert {what for what, _ in first.reader.events} == {"assign", "revoke"}
    assert first.assignment == frozenset()
    assert first.reader.failures == []


def test_two_members_share_and_the_one_that_stays_gets_everything_back(address: str, name: str) -> None:
    """Cooperative ones give back only what the other gets."""
    play(address, name, *((share, kind) for kind in KINDS))


async def crash(address: str, name: str, kind: str) -> None:
    """What a crashed member read goes to the others."""
    topics = frozenset({name})
    settings = await soon_missed(address, name, kind)
    async with joined(address, name, topics, **settings) as first:
        async with joined(address, name, topics, **settings) as second:
            await until(owns_all(PARTITIONS, first, second))
            await second.crash()
        await until(lambda: has_everything(first))


async def stay_away(address: str, name: str, kind: str) -> None:
    """Who stays away for too long leaves, is told so once, and comes back with the next call."""
    topics = frozenset({name})
    settings = member_settings(kind, max_poll_interval_ms=SESSION_MS)
    async with joined(address, name, topics, **settings) as idle, joined(address, name, topics, **settings) as busy:
        idle.membership.waiting(True)
        busy.membership.waiting(True)
        await until(owns_all(PARTITIONS, idle, busy))
        idle.membership.waiting(False)
        await until(lambda: has_everything(busy))
        assert idle.reader.events[-1][0] == "lose"
        assert not idle.membership.generation.is_member
        with pytest.raises(PollIntervalExceeded, match=r"max\.poll\.interval\.ms"):
            idle.membership.raise_if_lost()
        idle.membership.raise_if_lost()
        await asyncio.to_thread(idle.membership.waiting, True)
        await until(owns_all(PARTITIONS, idle, busy))


async def work_for_long(address: str, name: str, kind: str) -> None:
    """For longer than the session, in the middle of a rebalance: nobody else gets what is not given back."""
    topics = frozenset({name})
    session_ms = 2 * SESSION_MS
    settings = await soon_missed(address, name, kind, session_ms)
    async with joined(address, name, topics, **settings) as first:
        await until(lambda: has_everything(first))
        first.reader.gate.clear()
        async with joined(address, name, topics, **settings) as second:
            await asyncio.sleep(1.1 * session_ms / 1000)
            assert second.assignment == frozenset()
            assert has_everything(first)
            first.reader.gate.set()
            await until(owns_all(PARTITIONS, first, second))
    assert first.reader.failures == []


async def leave_while_joining(address: str, name: str, kind: str) -> None:
    """The others take their time to join; who leaves meanwhile does not wait for them."""
    topics = frozenset({name})
    async with joined(address, name, topics, **member_settings(kind)) as first:
        await until(lambda: has_everything(first))
        first.reader.gate.clear()
        async with joined(address, name, topics, **member_settings(kind)) as second:
            await until(lambda: second.membership.generation.member_id != "")
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                await second.close()
        first.reader.gate.set()
        await until(lambda: has_everything(first) and not first.membership.is_rebalancing)


def test_heartbeats_go_on_while_user_code_works_and_silence_ends_a_membership(address: str, name: str) -> None:
    scenarios: list[Scenario] = [crash, work_for_long, stay_away]
    usual = [(scenario, kind) for scenario in scenarios for kind in ("range", *BOTH_PROTOCOLS)]
    play(address, name, *usual, (leave_while_joining, "range"), (leave_while_joining, "consumer"))


async def come_back(address: str, name: str, kind: str) -> None:
    """A static member that comes back finds its partitions, and nobody else notices."""
    topics = frozenset({name})
    async with joined(address, name, topics, **member_settings(kind, group_instance_id="one")) as first:
        second_settings = member_settings(kind, group_instance_id="two")
        async with joined(address, name, topics, **second_settings) as second:
            await until(owns_all(PARTITIONS, first, second))
            had, events = second.assignment, len(first.reader.events)
        async with joined(address, name, topics, **second_settings) as again:
            await until(lambda: again.assignment == had)
            assert len(first.reader.events) == events


async def come_back_as_the_leader(address: str, name: str, kind: str) -> None:
    """A static member that leads comes back: it is spared the assignment, and everybody keeps what it had."""
    topics = frozenset({name})
    settings = member_settings(kind)
    async with joined(address, name, topics, **settings, group_instance_id="leads") as leader:
        await until(lambda: has_everything(leader))
        async with joined(address, name, topics, **settings, group_instance_id="follows") as other:
            await until(owns_all(PARTITIONS, leader, other))
            had, events = leader.assignment, len(other.reader.events)
            await leader.close()
            async with joined(address, name, topics, **settings, group_instance_id="leads") as again:
                await until(lambda: again.assignment == had)
                assert len(other.reader.events) == events
                await asyncio.to_thread(create_topics, address, 1, f"{name}-more")
                again.membership.subscribe(topics | {f"{name}-more"})
                await until(lambda: len(again.assignment | other.assignment) == PARTITIONS + 1)


async def fence(address: str, name: str, kind: str) -> None:
    """The second with an instance id takes the place of the first, which is told so for good."""
    settings = member_settings(kind, group_instance_id="same")
    async with joined(address, name, frozenset({name}), **settings) as first:
        await until(lambda: has_everything(first))
        async with joined(address, name, frozenset({name}), **settings) as second:
            await until(lambda: has_everything(second))
            await until(lambda: bool(first.reader.failures))
            for _ in range(2):
                with pytest.raises(Fenced, match=r"group\.instance\.id of its own"):
                    first.membership.raise_if_lost()
            await until(lambda: first.reader.events[-1][0] == "lose")
            assert has_everything(second)


async def be_refused(address: str, name: str, kind: str) -> None:
    """With KIP-848 it is the second that is refused."""
    settings = member_settings(kind, group_instance_id="same")
    async with joined(address, name, frozenset({name}), **settings) as first:
        await until(lambda: has_everything(first))
        async with joined(address, name, frozenset({name}), **settings) as second:
            await until(lambda: bool(second.reader.failures))
            with pytest.raises(BrokerError, match=r"group\.instance\.id") as refused:
                second.membership.raise_if_lost()
            assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
        assert has_everything(first)


def test_static_members(address: str, name: str) -> None:
    comers: list[tuple[Scenario, str]] = [(come_back, kind) for kind in ("range", *BOTH_PROTOCOLS)]
    leaders: list[tuple[Scenario, str]] = [(come_back_as_the_leader, kind) for kind in ("range", "cooperative-sticky")]
    play(address, name, *comers, *leaders, (fence, "range"), (be_refused, "consumer"))


async def find_later(address: str, name: str, kind: str) -> None:
    """A pattern with flags, which brokers know nothing of: it is resolved here in both protocols."""
    pattern = re.compile(rf"{name.upper()}\.[a-z]+", re.IGNORECASE)
    await asyncio.to_thread(create_topics, address, 1, f"{name}.a", f"other-{name}.a")
    async with joined(address, name, pattern, **member_settings(kind)) as member:
        await until(lambda: member.assignment == {TopicPartition(f"{name}.a", 0)})
        await asyncio.to_thread(create_topics, address, 2, f"{name}.b")
        wanted = {TopicPartition(f"{name}.a", 0), TopicPartition(f"{name}.b", 0), TopicPartition(f"{name}.b", 1)}
        await until(lambda: member.assignment == wanted)


async def let_the_broker_find(address: str, name: str, kind: str) -> None:
    """A pattern that brokers understand: only what is assigned is asked about."""
    async with joined(address, f"{name}-before", frozenset({name}), **member_settings(kind)) as other:
        await until(lambda: has_everything(other))
    async with joined(address, name, re.compile(f"{name[:-1]}[0-9]|{name}[a-z]+"), **member_settings(kind)) as member:
        await until(lambda: bool(member.assignment))
        assert name in {partition.topic for partition in member.assignment}
        assert set(member.network.cluster.topics) <= {partition.topic for partition in member.assignment}


async def spare_internal_topics(address: str, name: str, kind: str) -> None:
    pattern = re.compile(rf"__consumer_offsets|{name}")
    async with joined(address, name, pattern, **member_settings(kind)) as member:
        await until(lambda: has_everything(member))
        assert {partition.topic for partition in member.assignment} == {name}


def test_patterns(address: str, name: str) -> None:
    here: list[Scenario] = [find_later, spare_internal_topics]
    play(
        address,
        name,
        *((scenario, kind) for scenario in here for kind in BOTH_PROTOCOLS),
        (let_the_broker_find, "consumer"),
    )


async def grow(address: str, name: str, kind: str) -> None:
    """New partitions are read."""
    async with joined(address, name, frozenset({name}), **member_settings(kind)) as member:
        await until(lambda: has_everything(member))
        await grow_topic(member.network, name, PARTITIONS + 3)
        await until(lambda: has_everything(member, PARTITIONS + 3))
        if kind in BOTH_PROTOCOLS:
            assert {what for what, _ in member.reader.events} == {"assign"}


async def change(address: str, name: str, kind: str) -> None:
    """Another subscription takes the place of the first, and none gives everything back."""
    other = f"{name}-b"
    await asyncio.to_thread(create_topics, address, 1, other)
    async with joined(address, name, frozenset({name}), **member_settings(kind)) as member:
        await until(lambda: has_everything(member))
        member.membership.subscribe(frozenset({other}))
        await until(lambda: member.assignment == {TopicPartition(other, 0)})
        member.membership.unsubscribe()
        await until(lambda: member.assignment == frozenset())
        member.membership.subscribe(frozenset({name}))
        await until(lambda: has_everything(member))
    assert member.reader.failures == []


async def ask_for_a_rebalance(address: str, name: str, kind: str) -> None:
    """Whoever waits for a newer generation, to try a commit again, is woken by it."""
    async with joined(address, name, frozenset({name}), **member_settings(kind)) as member:
        await until(lambda: has_everything(member))
        older = member.membership.generation
        assert await member.membership.wait_for_epoch(older, 0.01) == older
        member.membership.request_rejoin("the user asked for it")
        newer = await member.membership.wait_for_epoch(older, PATIENCE_SECONDS)
        assert newer == older._replace(generation=older.generation + 1)
        await until(lambda: not member.membership.is_rebalancing)
        assert has_everything(member)


async def fail_in_a_listener(address: str, name: str, kind: str) -> None:
    """What user code raises is told at the next call; the rebalance goes on."""
    async with joined(address, name, frozenset({name}), **member_settings(kind)) as member:
        await until(lambda: has_everything(member))
        member.reader.raises = ZeroDivisionError("in a listener")
        async with joined(address, name, frozenset({name}), **member_settings(kind)) as second:
            await until(owns_all(PARTITIONS, member, second))
            with pytest.raises(Exception, match="in a listener"):
                member.membership.raise_if_lost()
            member.membership.raise_if_lost()
            member.reader.raises = None


async def hear_of_it_by_a_commit(address: str, name: str, kind: str) -> None:
    """A commit may be the first to learn that the group does not know the member any more."""
    settings = member_settings(kind, heartbeat_interval_ms=QUIET_MS // 2)
    async with joined(address, name, frozenset({name}), **settings) as member, AsyncAdmin(address) as admin:
        await until(lambda: has_everything(member))
        (await admin.remove_members(name)).raise_for_errors()
        member.membership.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, member.membership.generation)
        await until(lambda: [what for what, _ in member.reader.events] == ["assign", "lose", "assign"])
        await until(lambda: has_everything(member))


def test_what_is_read_follows_topics_and_subscriptions(address: str, name: str) -> None:
    scenarios: list[Scenario] = [grow, change, fail_in_a_listener]
    both = [(scenario, kind) for scenario in scenarios for kind in ("range", *BOTH_PROTOCOLS)]
    play(address, name, *both, (hear_of_it_by_a_commit, "range"), (ask_for_a_rebalance, "cooperative-sticky"))


async def ask_for_too_short_a_session(address: str, name: str, kind: str) -> None:
    async with joined(address, name, frozenset({name}), **member_settings(kind, session_timeout_ms=400)) as member:
        await until(lambda: bool(member.reader.failures))
        for _ in range(2):
            with pytest.raises(BrokerError, match=r"session\.timeout\.ms") as refused:
                member.membership.raise_if_lost()
        assert refused.value.code is ErrorCode.INVALID_SESSION_TIMEOUT


async def have_no_common_assignor(address: str, name: str, kind: str) -> None:
    async with joined(address, name, frozenset({name}), **member_settings("range")) as first:
        await until(lambda: has_everything(first))
        async with joined(address, name, frozenset({name}), **member_settings(kind)) as other:
            await until(lambda: bool(other.reader.failures))
            with pytest.raises(BrokerError, match=r"partition\.assignment\.strategy") as refused:
                other.membership.raise_if_lost()
            assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert has_everything(first)


async def ask_for_an_unknown_assignor(address: str, name: str, kind: str) -> None:
    settings = member_settings(kind, group_remote_assignor="alphabetical")
    async with joined(address, name, frozenset({name}), **settings) as member:
        await until(lambda: bool(member.reader.failures))
        with pytest.raises(BrokerError, match=r"group\.remote\.assignor") as refused:
            member.membership.raise_if_lost()
        assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_what_a_group_does_not_allow_is_named(address: str, name: str) -> None:
    play(
        address,
        name,
        (ask_for_too_short_a_session, "range"),
        (have_no_common_assignor, "sticky"),
        (ask_for_an_unknown_assignor, "consumer"),
    )
