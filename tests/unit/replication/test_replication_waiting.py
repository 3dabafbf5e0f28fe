import asyncio

import pytest

from ottla.replication.waiting import FetchWait, OffsetWaits


class Watched:
    def __init__(self) -> None:
        self.waits: list[FetchWait] = []

    def add_fetch_wait(self, wait: FetchWait) -> None:
        self.waits.append(wait)

    def remove_fetch_wait(self, wait: FetchWait) -> None:
        self.waits.remove(wait)


@pytest.mark.parametrize("ending", ["bytes", "time", "end", "cancel"])
def test_a_wait_leaves_all_its_partitions_however_it_ends(ending: str) -> None:
    async def scenario() -> None:
        partitions = [Watched(), Watched(), Watched()]
        wait = FetchWait(partitions, 10, 0.001 if ending == "time" else 60.0)
        assert [watched.waits for watched in partitions] == [[wait]] * 3
        if ending == "bytes":
            wait.bytes_added(4)
            assert not wait.over.done()
            wait.bytes_added(6)
        elif ending == "end":
            wait.end()
            wait.end()
        elif ending == "cancel":
            wait.over.cancel()
        else:
            is_over = asyncio.Event()
            wait.over.add_done_callback(lambda _: is_over.set())
            await is_over.wait()
        assert wait.over.done()
        assert [watched.waits for watched in partitions] == [[], [], []]

    asyncio.run(scenario())


def test_offsets_are_reached_together_and_never_twice() -> None:
    async def scenario() -> None:
        waits = OffsetWaits()
        futures = {offset: [waits.add(offset), waits.add(offset)] for offset in (5, 3, 9, 4)}
        waits.reached(2)
        assert not any(future.done() for pair in futures.values() for future in pair)
        waits.reached(4)
        done = {offset for offset, pair in futures.items() if all(future.done() for future in pair)}
        assert done == {3, 4}
        futures[5][0].cancel()
        waits.reached(100)
        assert futures[5][1].done()
        assert futures[9][0].done()

    asyncio.run(scenario())


def test_failing_ends_all_who_wait() -> None:
    async def scenario() -> None:
        waits = OffsetWaits()
        futures = [waits.add(offset) for offset in (1, 2, 3)]
        waits.reached(1)
        waits.fail(ValueError("gone"))
        assert futures[0].result() is None
        for future in futures[1:]:
            assert isinstance(future.exception(), ValueError)
        later = waits.add(1)
        waits.reached(1)
        assert later.done()

    asyncio.run(scenario())
