"""Deleting records through the leader: who may, up to where, and who notices."""

import asyncio

import pytest
from tests.unit.replication.rig import NODE_ID, Rig, appended, batch, image, turns

from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.partition import UP_TO_HIGH_WATERMARK, Partition


def refusal(partition: Partition, offset: int) -> ErrorCode:
    before = partition.log.log_start_offset
    with pytest.raises(KafkaError) as caught:
        partition.delete_records(offset)
    assert partition.log.log_start_offset == before
    return caught.value.code


async def filled(rig: Rig, config: LogConfig | None = None) -> Partition:
    partition = await rig.partition(config)
    for number in range(5):
        appended(partition, b"%d" % number)
    return partition


def test_up_to_an_offset_and_up_to_the_high_watermark() -> None:
    async def scenario() -> None:
        partition = await filled(Rig())
        assert [partition.delete_records(offset) for offset in (2, 1, 0)] == [2, 2, 2]
        assert partition.delete_records(UP_TO_HIGH_WATERMARK) == 5
        assert partition.read(5, 100, min_one_batch=True) is None
        assert appended(partition, b"5").log_start_offset == 5

    asyncio.run(scenario())


def test_only_what_every_replica_has() -> None:
    """Records above the high watermark could still be lost, and a start beyond the end would be left."""

    async def scenario() -> None:
        rig = Rig()
        partition = await filled(rig)
        partition.apply(image(isr=(NODE_ID, 2), epoch=1))
        appended(partition, b"5")
        assert (partition.high_watermark, partition.log.log_end_offset) == (5, 6)
        assert refusal(partition, 6) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert partition.delete_records(UP_TO_HIGH_WATERMARK) == 5

    asyncio.run(scenario())


def test_another_broker_leads() -> None:
    async def scenario() -> None:
        partition = await filled(Rig())
        partition.apply(image(leader=2, epoch=1))
        assert refusal(partition, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await partition.stop()
        assert refusal(partition, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(scenario())


def test_a_directory_that_failed() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await filled(rig)
        rig.directory.fail(OSError("gone"))
        assert refusal(partition, 1) == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(scenario())


def test_appends_queue_behind_the_roll_of_an_old_segment() -> None:
    """Retention rolls the active segment while producers write: nothing is lost, nothing overtakes."""

    async def scenario() -> None:
        rig = Rig()
        partition = await filled(rig, LogConfig(retention_ms=0, file_delete_delay_ms=0))
        rig.clock.advance(1)
        rig.executor.holds = True
        retention = asyncio.ensure_future(rig.logs.apply_retention())
        await turns()
        assert rig.executor.holding, "the roll must be under way"
        waiting = partition.append(memoryview(batch(b"5", rig.clock.now_ms())), -1)
        assert isinstance(waiting, asyncio.Future)
        rig.executor.release()
        await retention
        assert (await waiting).first_offset == 5
        assert (partition.log.log_start_offset, partition.high_watermark) == (5, 6)
        assert [segment.base_offset for segment in partition.log.segments] == [5]

    asyncio.run(scenario())
