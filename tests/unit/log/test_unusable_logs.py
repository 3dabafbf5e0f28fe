"""Logs that cannot be opened, and names that mean something else than they did."""

import asyncio
import errno

import pytest
from tests.unit.log.support import TOPIC_ID, TwoDirectories, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError

OTHER_ID = bytes(range(20, 36))


def test_a_log_that_cannot_be_opened_is_out_of_use_by_itself_and_comes_back() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        for partition in range(2):
            log = await manager.create_log("t", partition, TOPIC_ID, LogConfig())
            await append(log, batch_of([b"a"]))
            log.high_watermark = log.log_end_offset
        await manager.shutdown()
        in_the_way = "/one/t-0/leader-epoch-checkpoint"
        brokers.disk.delete(in_the_way)
        brokers.disk.make_directory(in_the_way)
        brokers.disk.fail("read", errno.EISDIR, path_part=in_the_way, times=1000)
        manager = await brokers.open()
        assert not manager.has_failures
        assert [str(log.topic_partition) for log in manager.all_logs()] == ["t-1"]
        for _ in range(2):
            with pytest.raises(KafkaError) as caught:
                await manager.create_log("t", 0, TOPIC_ID, LogConfig(), is_new=False)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        await manager.checkpoint_recovery_points()
        await manager.checkpoint_high_watermarks()
        assert b"t 0 1" in brokers.disk.read("/one/recovery-point-offset-checkpoint")
        brokers.disk.clear_faults()
        brokers.disk.delete_directory(in_the_way)
        log = await manager.create_log("t", 0, TOPIC_ID, LogConfig(), is_new=False)
        assert (log.log_end_offset, log.high_watermark, len(read_all(log)) > 0) == (1, 1, True)
        await manager.shutdown()

    asyncio.run(run())


def test_a_new_topic_does_not_inherit_the_recovery_point_of_a_deleted_one() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        log = await manager.create_log("t", 0, TOPIC_ID, LogConfig())
        for _ in range(5):
            await append(log, batch_of([b"a"]))
        await log.flush()
        await manager.checkpoint_recovery_points()
        await manager.delete_log("t", 0)
        await manager.create_log("t", 0, bytes(16), LogConfig())
        assert b"t 0 5" not in brokers.disk.read("/one/recovery-point-offset-checkpoint")

    asyncio.run(run())


def test_a_file_with_the_name_of_a_partition_fails_no_directory() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        brokers.disk.fail("make_directory", errno.EEXIST, path_part="/one/t-0")
        log = await manager.create_log("t", 0, TOPIC_ID, LogConfig())
        assert log.directory.path == "/two"
        assert not manager.has_failures

    asyncio.run(run())
