"""Groups whose broker is killed and comes back: the members find it again, and nobody reads what another reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.compat.client.membership.conftest import create_topics
from tests.compat.client.membership.test_members import KINDS, PARTITIONS, member_settings
from tests.compat.clients.groups.conftest import QUIET
from tests.conftest import start_broker
from tests.peers.process import ServerProcess
from tests.unit.client.membership.reading import joined, owns_all, until


@pytest.fixture
def mortal(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start_broker(target, tmp_path_factory.mktemp("mortal"), None, QUIET)
    yield server
    server.stop()


def test_members_find_their_group_again(mortal: ServerProcess) -> None:
    names = {kind: f"restarts-{kind}" for kind in KINDS}
    create_topics(mortal.bootstrap, PARTITIONS, *names.values())
    ready = asyncio.Barrier(len(names) + 1)

    async def one(kind: str, name: str) -> None:
        settings = member_settings(kind, reconnect_backoff_ms=20, reconnect_backoff_max_ms=200)
        topics = frozenset({name})
        async with joined(mortal.bootstrap, name, topics, **settings) as first:
            async with joined(mortal.bootstrap, name, topics, **settings) as second:
                await until(owns_all(PARTITIONS, first, second))
                await ready.wait()
                await ready.wait()
                async with joined(mortal.bootstrap, name, topics, **settings) as third:
                    await until(owns_all(PARTITIONS, first, second, third))
            await until(lambda: len(first.assignment) == PARTITIONS)
            assert first.reader.failures == second.reader.failures == []

    async def kill_and_start() -> None:
        await ready.wait()
        await asyncio.to_thread(mortal.kill)
        await asyncio.to_thread(mortal.start)
        await ready.wait()

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(kill_and_start())
            for kind, name in names.items():
                group.create_task(one(kind, name))

    asyncio.run(all_of_them())
