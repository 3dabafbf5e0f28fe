"""A request that a broker does not serve is refused at once, also where it had to wait for its connection first."""

import asyncio

from ottla.client.admin import AsyncAdmin, ScramUpsert
from ottla.client.errors import UnsupportedByBroker
from ottla.testing import TestBroker


def test_the_first_request_on_a_new_connection() -> None:
    async def scenario() -> None:
        with TestBroker() as broker:
            # By another name than the broker has, so that the bootstrap connection is not the broker's own.
            async with AsyncAdmin(f"localhost:{broker.port}") as admin:
                results = await admin.alter_user_scram_credentials([ScramUpsert("alice", "secret")], timeout=30)
                assert isinstance(results.errors["alice"], UnsupportedByBroker)
                assert await admin.list_topics() == []

    asyncio.run(asyncio.wait_for(scenario(), 60))
