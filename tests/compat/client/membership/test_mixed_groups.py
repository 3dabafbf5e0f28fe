"""Our member in one group with a member of every other library, each as the leader in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.compat.client.membership.conftest import create_topics
from tests.compat.client.membership.test_members import member_settings
from tests.compat.clients.groups.hosts import (
    AIOKAFKA,
    CONFLUENT,
    JAVA_43,
    KAFKA_PYTHON,
    GroupHost,
    HostedMember,
    Kind,
)
from tests.unit.client.membership.reading import PATIENCE_SECONDS, Joined, joined, until

PARTITIONS = 4
OUR_NAMES = {"cooperative": "cooperative-sticky"}
MIXED = {
    CONFLUENT: ("range", "cooperative", "consumer"),
    AIOKAFKA: ("range", "sticky"),
    KAFKA_PYTHON: ("roundrobin", "cooperative"),
    JAVA_43: ("range", "sticky", "cooperative", "consumer"),
}
Host = Callable[[Kind], GroupHost]


async def until_they(is_true: Callable[[], bool]) -> None:
    """Another process is asked, which must not keep ours from its heartbeats."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await asyncio.to_thread(is_true):  # noqa: ASYNC110 - another process has no event
            await asyncio.sleep(0.03)


def shared(ours: Joined, theirs: HostedMember) -> bool:
    mine = ours.numbers
    return len(mine) == PARTITIONS // 2 and sorted(mine + theirs.assigned()) == list(range(PARTITIONS))


async def lead_and_follow(address: str, name: str, other: GroupHost, assignor: str) -> None:
    """Ours is there first and leads; it goes, and the other leads; ours comes back and follows."""
    settings = member_settings(OUR_NAMES.get(assignor, assignor))
    chosen = {"protocol": "consumer"} if assignor == "consumer" else {"assignor": assignor}
    async with joined(address, name, frozenset({name}), **settings) as first:
        await until(lambda: len(first.assignment) == PARTITIONS)
        theirs = await asyncio.to_thread(lambda: other.join(name, name, **chosen))
        await until_they(lambda: shared(first, theirs))
    await until_they(lambda: len(theirs.assigned()) == PARTITIONS)
    async with joined(address, name, frozenset({name}), **settings) as second:
        await until_they(lambda: shared(second, theirs))
        await asyncio.to_thread(theirs.leave)
        await until(lambda: len(second.assignment) == PARTITIONS)
    assert first.reader.failures == second.reader.failures == []
    assert "lose" not in {what for what, _ in first.reader.events + second.reader.events}


def test_a_member_of_another_library_and_ours_share(address: str, name: str, host: Host) -> None:
    """All of them at the same time, in groups of their own."""
    pairs = [(kind, assignor) for kind, assignors in MIXED.items() for assignor in assignors]
    create_topics(address, PARTITIONS, *(f"{name}-{kind.library}-{assignor}" for kind, assignor in pairs))

    async def one(kind: Kind, assignor: str, other: GroupHost) -> None:
        try:
            await lead_and_follow(address, f"{name}-{kind.library}-{assignor}", other, assignor)
        except BaseException as error:
            error.add_note(f"with {kind.library} and {assignor}")
            raise

    async def all_of_them() -> None:
        hosts = {kind: host(kind) for kind in MIXED}
        async with asyncio.TaskGroup() as group:
            for kind, assignor in pairs:
                group.create_task(one(kind, assignor, hosts[kind]))

    asyncio.run(all_of_them())
