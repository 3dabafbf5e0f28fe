"""A timer of a ledger that is due while an append waits: what came before it has the first say."""

import asyncio

import pytest
from tests.unit.ledger.test_ledger import grow, new_ledger
from tests.unit.replication.rig import Rig, turns

from ottla.ledger import Decision
from ottla.log.config import LogConfig


@pytest.mark.parametrize("change", ["renewed", "cancelled", "left alone"])
def test_a_timer_that_is_due_counts_unless_something_ahead_of_it_called_it_off(change: str) -> None:
    """Its decision waits for an append; a heartbeat that came before it must still save the member."""

    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig, LogConfig(cleanup_policy=("compact",), segment_bytes=200))
        for _ in range(2):
            grow(ledger, "a")
        expired: list[str] = []
        is_due = asyncio.Event()

        def expire() -> Decision[None]:
            expired.append("expired")
            return Decision(None)

        def heartbeat() -> Decision[None]:
            if change == "renewed":
                ledger.schedule("session", 60_000, expire)
            elif change == "cancelled":
                ledger.cancel("session")
            return Decision(None)

        ledger.schedule("session", 0, expire)
        asyncio.get_running_loop().call_later(0, is_due.set)
        rig.executor.holds = True
        written, heard = grow(ledger, "a"), ledger.write(heartbeat)
        await is_due.wait()
        await turns()
        assert (written.done(), heard.done(), expired) == (False, False, [])
        rig.executor.release()
        await turns(100)
        assert (written.done(), heard.done()) == (True, True)
        assert expired == (["expired"] if change == "left alone" else [])
        assert ledger.is_scheduled("session") == (change == "renewed")
        ledger.unload()

    asyncio.run(scenario())
