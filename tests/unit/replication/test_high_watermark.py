"""What readers may see and producers are promised."""

import asyncio

import pytest
from tests.unit.replication.rig import Rig, appended, image, turns, visible

from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.partition import Partition
from ottla.replication.waiting import FetchWait

FLUSHED_FIRST = [LogConfig(flush_messages=1), LogConfig(ottla_flush_before_ack=True)]


def test_with_one_replica_it_follows_the_end() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        for acks in (1, -1):
            info = appended(partition, b"value", acks)
            assert partition.acknowledgement(info, acks) is None
        assert partition.high_watermark == partition.last_stable_offset == 2

    asyncio.run(scenario())


def test_replicas_in_sync_hold_it_back_until_they_are_out() -> None:
    async def scenario() -> None:
        partition = await Rig().partition(isr=(1, 2))
        info = appended(partition, b"value")
        assert (partition.high_watermark, visible(partition)) == (0, [])
        assert partition.acknowledgement(info, 1) is None, "acks=1 waits for the leader only"
        promised = partition.acknowledgement(info, -1)
        assert promised is not None
        await turns()
        assert not promised.done()
        partition.apply(image(epoch=0, isr=(1,)))
        await promised
        assert (partition.high_watermark, visible(partition)) == (1, [b"value"])

    asyncio.run(scenario())


def test_who_loses_the_lead_keeps_no_promise() -> None:
    async def scenario() -> None:
        partition = await Rig().partition(isr=(1, 2))
        promised = partition.acknowledgement(appended(partition, b"value"), -1)
        assert promised is not None
        partition.apply(image(leader=2, epoch=1, isr=(1, 2)))
        with pytest.raises(KafkaError) as caught:
            await promised
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(scenario())


def test_too_few_replicas_in_sync() -> None:
    async def scenario() -> None:
        partition = await Rig().partition(LogConfig(min_insync_replicas=2))
        with pytest.raises(KafkaError) as caught:
            appended(partition, b"value", -1)
        assert caught.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert appended(partition, b"value", 1).first_offset == 0
        partition.apply(image(isr=(1, 2)))
        assert appended(partition, b"value", -1).first_offset == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("config", FLUSHED_FIRST)
def test_a_flush_holds_it_back(config: LogConfig) -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(config)
        rig.executor.holds = True
        promised = partition.acknowledgement(appended(partition, b"value", 1), 1)
        assert promised is not None
        await turns()
        assert (promised.done(), partition.high_watermark, visible(partition)) == (False, 0, [])
        rig.executor.release()
        await promised
        assert (partition.high_watermark, visible(partition)) == (1, [b"value"])

    asyncio.run(scenario())


@pytest.mark.parametrize("config", FLUSHED_FIRST)
def test_all_that_arrives_during_a_flush_shares_the_next(config: LogConfig) -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(config)
        before = rig.executor.runs
        rig.executor.holds = True
        promises = [partition.acknowledgement(appended(partition, b"first"), -1)]
        await turns()
        promises += [partition.acknowledgement(appended(partition, b"%d" % number), -1) for number in range(50)]
        await turns()
        rig.executor.release()
        await asyncio.gather(*(promise for promise in promises if promise is not None))
        assert rig.executor.runs - before == 2
        assert partition.high_watermark == 51

    asyncio.run(scenario())


def test_every_n_records_one_flush() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(LogConfig(flush_messages=3))
        waits = []
        for _ in range(6):
            promised = partition.acknowledgement(appended(partition, b"value"), -1)
            waits.append(promised is not None)
            if promised is not None:
                await promised
                assert partition.log.flushed_offset == partition.log.log_end_offset
        assert waits == [False, False, True, False, False, True]

    asyncio.run(scenario())


# Long polls


async def told(wait: FetchWait) -> None:
    is_over = asyncio.Event()
    wait.over.add_done_callback(lambda _: is_over.set())
    await is_over.wait()


def poll(partition: Partition, bytes_missing: int) -> FetchWait:
    return FetchWait([partition], bytes_missing, 60.0)


def test_a_poll_ends_when_enough_became_visible() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        wait = poll(partition, 100)
        appended(partition, b"x" * 20)
        assert not wait.over.done()
        appended(partition, b"x" * 20)
        assert wait.over.done()

    asyncio.run(scenario())


def test_a_poll_does_not_end_for_what_is_not_visible() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(FLUSHED_FIRST[0])
        wait = poll(partition, 1)
        rig.executor.holds = True
        appended(partition, b"value")
        await turns()
        assert not wait.over.done()
        rig.executor.release()
        await told(wait)

    asyncio.run(scenario())


@pytest.mark.parametrize("event", ["stopped", "led by another broker", "released"])
def test_a_poll_ends_when_its_partition_changes(event: str) -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        wait = poll(partition, 1)
        if event == "stopped":
            await partition.stop()
        elif event == "released":
            partition.release_waits()
        else:
            partition.apply(image(leader=2, epoch=1, isr=(1, 2)))
        assert wait.over.done()

    asyncio.run(scenario())
