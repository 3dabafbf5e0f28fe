"""Appends wait while something needs the log to stand still, and go on in their order."""

import asyncio

import pytest
from tests.unit.replication.rig import Rig, appended, batch, queued, turns, visible

from ottla.log.config import LogConfig

SMALL_SEGMENTS = LogConfig(segment_bytes=2 * len(batch(b"00")) + 10)


@pytest.mark.parametrize("fails", [False, True])
def test_they_wait_in_order_and_readers_do_not(fails: bool) -> None:
    async def scenario() -> None:
        partition = await Rig().partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        done = asyncio.Event()

        async def work() -> str:
            await done.wait()
            if fails:
                raise OSError("it went wrong")
            return "done"

        holding = asyncio.create_task(partition.hold_appends(work))
        await turns()
        waiting = [queued(partition, b"%02d" % number) for number in range(1, 5)]
        await turns()
        assert not any(future.done() for future in waiting)
        assert (partition.log.log_end_offset, visible(partition)) == (1, [b"00"])
        done.set()
        (result,) = await asyncio.gather(holding, return_exceptions=True)
        assert isinstance(result, OSError) if fails else result == "done"
        assert [(await future).first_offset for future in waiting] == [1, 2, 3, 4]
        assert visible(partition) == [b"%02d" % number for number in range(5)]
        appended(partition, b"05")

    asyncio.run(scenario())


def test_who_holds_them_waits_for_a_roll_and_for_who_came_before() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        for value in (b"00", b"01"):
            appended(partition, value)
        rig.executor.holds = True
        rolling = queued(partition, b"02")
        await turns()
        seen: list[int] = []

        async def work() -> None:
            seen.append(partition.log.log_end_offset)
            await asyncio.sleep(0)
            seen.append(partition.log.log_end_offset)

        holders = [asyncio.create_task(partition.hold_appends(work)) for _ in range(2)]
        await turns()
        assert seen == []
        rig.executor.release()
        await asyncio.gather(*holders)
        assert (await rolling).first_offset == 2
        assert seen == [3] * 4

    asyncio.run(scenario())


def test_a_partition_that_stops_waits_for_the_end() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        done = asyncio.Event()

        async def work() -> None:
            await done.wait()
            raise OSError("it went wrong")

        holding = asyncio.create_task(partition.hold_appends(work))
        await turns()
        stopping = asyncio.create_task(partition.stop())
        await turns()
        assert not stopping.done()
        done.set()
        await stopping
        with pytest.raises(OSError, match="went wrong"):
            await holding

    asyncio.run(scenario())
