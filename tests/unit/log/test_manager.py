"""All logs of a broker: creating, finding, deleting, checkpointing, stopping."""

import asyncio
import errno
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from tests.unit.log.support import (
    TOPIC,
    TOPIC_ID,
    Rig,
    TwoDirectories,
    append,
    batch_of,
    read_all,
    until,
)

from ottla.log.config import LogConfig
from ottla.log.directory import LOG_START_CHECKPOINT, LogDirectory
from ottla.log.files import TopicPartition
from ottla.log.manager_settings import LogManagerSettings
from ottla.protocol.errors import ErrorCode, KafkaError

Result = TypeVar("Result")

OTHER_ID = bytes(range(20, 36))


class SlowExecutor:
    """Takes its time for each piece of work, and counts how many pieces with the same first argument overlap."""

    def __init__(self) -> None:
        self.most_at_once: Counter[object] = Counter()
        self._under_way: Counter[object] = Counter()

    def run(self, work: Callable[..., Result], /, *args: object) -> Awaitable[Result]:
        async def later() -> Result:
            what = args[0] if args else None
            self._under_way[what] += 1
            self.most_at_once[what] = max(self.most_at_once[what], self._under_way[what])
            for _ in range(5):
                await asyncio.sleep(0)
            self._under_way[what] -= 1
            return work(*args)

        return asyncio.ensure_future(later())


def test_a_checkpoint_is_written_by_one_at_a_time_and_the_newest_stays() -> None:
    """Deleting topics writes the same file as the clock does; one that took it from the other failed the directory."""

    async def run() -> None:
        executor = SlowExecutor()
        rig = Rig(executor=executor)
        log = await rig.open()
        await append(log, batch_of([b"a", b"b", b"c"]))
        log.high_watermark = 3
        writes = []
        for offset in (1, 2, 3):
            log.advance_start(offset)
            writes.append(asyncio.ensure_future(rig.manager.checkpoint_log_start_offsets()))
            await asyncio.sleep(0)
        await asyncio.gather(*writes)
        assert executor.most_at_once[LOG_START_CHECKPOINT] == 1
        assert rig.directory.read_checkpoint(LOG_START_CHECKPOINT) == {TopicPartition(TOPIC, 0): 3}
        await rig.manager.shutdown()

    asyncio.run(run())


def test_logs_are_spread_over_the_directories_and_found_again() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        for partition in range(6):
            await manager.create_log("t", partition, TOPIC_ID, LogConfig())
        by_directory = [[log for log in manager.all_logs() if log.directory is d] for d in brokers.directories]
        assert [len(logs) for logs in by_directory] == [3, 3]
        await manager.shutdown()
        manager = await brokers.open()
        assert {log.topic_partition for log in manager.all_logs()} == {TopicPartition("t", n) for n in range(6)}
        assert manager.get("t", 6) is None
        assert manager.get("u", 0) is None

    asyncio.run(run())


def test_a_log_is_made_once() -> None:
    async def run() -> None:
        manager = await TwoDirectories().open()
        first, second = await asyncio.gather(*(manager.create_log("t", 0, TOPIC_ID, LogConfig()) for _ in range(2)))
        assert first is second
        assert manager.get("t", 0) is first
        assert await manager.create_log("t", 0, TOPIC_ID, LogConfig()) is first

    asyncio.run(run())


def test_a_directory_of_an_older_topic_of_the_same_name_is_not_taken_over() -> None:
    async def run() -> None:
        manager = await TwoDirectories().open()
        await manager.create_log("t", 0, TOPIC_ID, LogConfig())
        with pytest.raises(KafkaError) as caught:
            await manager.create_log("t", 0, OTHER_ID, LogConfig())
        assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID

    asyncio.run(run())


def test_a_directory_without_an_id_gets_one() -> None:
    async def run() -> None:
        rig = Rig()
        await rig.open()
        await rig.manager.shutdown()
        rig.disk.delete(f"{rig.log_path}/partition.metadata")
        log = await rig.open()
        assert log.topic_id == TOPIC_ID
        assert rig.disk.exists(f"{rig.log_path}/partition.metadata")

    asyncio.run(run())


def test_a_partition_in_two_directories_is_refused() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        for path in ("/one/t-0", "/two/t-0"):
            brokers.disk.make_directory(path)
        await brokers.open()
        failures = [directory.failure for directory in brokers.directories]
        assert failures[0] is None
        assert "two log directories" in str(failures[1])

    asyncio.run(run())


def test_a_deleted_log_is_gone_at_once_and_its_files_later() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(file_delete_delay_ms=0))
        log = await rig.open()
        await append(log, batch_of([b"a"]))
        found = log.read(0, 100, up_to_offset=1)
        assert found is not None
        assert await rig.manager.delete_log(TOPIC, 0)
        assert rig.manager.get(TOPIC, 0) is None
        assert not await rig.manager.delete_log(TOPIC, 0)
        names = [name for name in rig.disk.list_directory(rig.path) if name.startswith(TOPIC)]
        assert len(names) == 1
        assert names[0].startswith(f"{TOPIC}-0.")
        assert names[0].endswith("-delete")
        with pytest.raises(KafkaError):
            await append(log, batch_of([b"b"]))
        assert len(found.read()) == found.length
        again = await rig.manager.create_log(TOPIC, 0, OTHER_ID, rig.config)
        assert again.log_end_offset == 0
        await until(lambda: len([name for name in rig.disk.list_directory(rig.path) if name.startswith(TOPIC)]) == 1)
        assert (await append(again, batch_of([b"c"]))).first_offset == 0

    asyncio.run(run())


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(file_delete_delay_ms=60_000))
        await append(await rig.open(), batch_of([b"a"]))
        await rig.manager.delete_log(TOPIC, 0)
        await rig.manager.shutdown()
        log = await rig.open()
        assert log.log_end_offset == 0
        assert [name for name in rig.disk.list_directory(rig.path) if name.startswith(TOPIC)] == [f"{TOPIC}-0"]

    asyncio.run(run())


def test_checkpoints_name_every_log() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await append(log, batch_of([b"a", b"b", b"c"]))
        await log.flush()
        log.high_watermark = 2
        await rig.manager.checkpoint_recovery_points()
        await rig.manager.checkpoint_high_watermarks()
        await rig.manager.checkpoint_log_start_offsets()
        assert rig.disk.read("/data/recovery-point-offset-checkpoint") == b"0\n1\nevents 0 3\n"
        assert rig.disk.read("/data/replication-offset-checkpoint") == b"0\n1\nevents 0 2\n"
        assert rig.disk.read("/data/log-start-offset-checkpoint") == b"0\n0\n"
        log.log_start_offset = 1
        await rig.manager.checkpoint_log_start_offsets()
        assert rig.disk.read("/data/log-start-offset-checkpoint") == b"0\n1\nevents 0 1\n"

    asyncio.run(run())


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_out_of_use() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        brokers.disk.fail("write_atomically", path_part="/two/")
        await manager.checkpoint_recovery_points()
        assert [directory.failure is None for directory in brokers.directories] == [True, False]
        for partition in range(2):
            log = await manager.create_log("t", partition, TOPIC_ID, LogConfig())
            assert log.directory is brokers.directories[0]

    asyncio.run(run())


def test_without_a_usable_directory_nothing_is_created() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        for directory in brokers.directories:
            directory.fail(OSError("gone"))
        with pytest.raises(KafkaError) as caught:
            await manager.create_log("t", 0, TOPIC_ID, LogConfig())
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())


def test_a_directory_that_does_not_read_does_not_stop_the_others() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        for partition in range(2):
            await append(await manager.create_log("t", partition, TOPIC_ID, LogConfig()), batch_of([b"a"]))
        await manager.shutdown()
        brokers.disk.fail("read", path_part="/one/recovery-point-offset-checkpoint")
        manager = await brokers.open()
        assert [directory.failure is None for directory in brokers.directories] == [False, True]
        assert [len(read_all(log)) > 0 for log in manager.all_logs()] == [True]

    asyncio.run(run())


def test_producers_expire() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        await append(log, batch_of([b"a"], producer_id=5, producer_epoch=0, base_sequence=0))
        await rig.manager.expire_producers()
        assert log.producer_state.producers
        rig.clock.advance(86_400_000)
        await rig.manager.expire_producers()
        assert not log.producer_state.producers

    asyncio.run(run())


def test_ten_thousand_producers_expire_without_holding_up_the_loop() -> None:
    """A thousand in one turn of the loop at the most; one that writes meanwhile is kept."""

    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        for producer_id in range(10_000):
            await append(log, batch_of([b"a"], producer_id=producer_id, producer_epoch=0, base_sequence=0))
        assert len(log.producer_state.producers) == 10_000
        rig.clock.advance(86_400_000)
        now_ms = rig.clock.now_ms()
        left: list[int] = []

        async def watch() -> None:
            late = batch_of([b"b"], timestamp=now_ms, producer_id=9_999, producer_epoch=0, base_sequence=1)
            await append(log, late, now_ms=now_ms)
            while len(log.producer_state.producers) > 1:
                left.append(len(log.producer_state.producers))
                await asyncio.sleep(0)

        await asyncio.gather(rig.manager.expire_producers(), watch())
        assert list(log.producer_state.producers) == [9_999]
        assert max(before - after for before, after in itertools.pairwise(left)) <= 1000

    asyncio.run(run())


def test_a_full_disk_fails_no_directory() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        brokers.disk.fail("write_atomically", errno.ENOSPC, path_part="/one/", times=100)
        await manager.checkpoint_recovery_points()
        for partition in range(2):
            log = await manager.create_log("t", partition, TOPIC_ID, LogConfig())
            assert log.directory is brokers.directories[1]
        assert brokers.disk.list_directory("/one").count("t-0") == 0, "nothing is left of what was refused"
        brokers.disk.fail("write_atomically", errno.ENOSPC, path_part="/two/", times=100)
        with pytest.raises(KafkaError) as caught:
            await manager.create_log("t", 2, TOPIC_ID, LogConfig())
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not manager.has_failures
        brokers.disk.clear_faults()
        assert (await manager.create_log("t", 2, TOPIC_ID, LogConfig())).directory is brokers.directories[0]

    asyncio.run(run())


def test_a_directory_that_fails_while_a_log_is_made_is_passed_over() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        failed: list[LogDirectory] = []
        for directory in brokers.directories:
            directory.on_failure = failed.append
        brokers.disk.fail("make_directory", errno.EROFS, path_part="/one/")
        assert (await manager.create_log("t", 0, TOPIC_ID, LogConfig())).directory is brokers.directories[1]
        assert failed == [brokers.directories[0]]

    asyncio.run(run())


def test_what_may_be_in_a_failed_directory_is_not_made_again() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        known = await manager.create_log("t", 1, TOPIC_ID, LogConfig(), is_new=False)
        brokers.directories[1].fail(OSError("gone"))
        with pytest.raises(KafkaError) as caught:
            await manager.create_log("t", 0, TOPIC_ID, LogConfig(), is_new=False)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await manager.create_log("t", 1, TOPIC_ID, LogConfig(), is_new=False) is known
        assert (await manager.create_log("t", 2, TOPIC_ID, LogConfig())).directory is brokers.directories[0]

    asyncio.run(run())


def test_a_log_in_a_failed_directory_can_be_deleted() -> None:
    async def run() -> None:
        brokers = TwoDirectories()
        manager = await brokers.open()
        log = await manager.create_log("t", 0, TOPIC_ID, LogConfig())
        log.directory.fail(OSError("gone"))
        brokers.disk.fail("rename", times=100)
        assert await manager.delete_log("t", 0)
        assert manager.get("t", 0) is None
        await manager.shutdown()

    asyncio.run(run())


def test_the_periodic_work_runs_until_it_is_cancelled() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(flush_ms=0))
        log = await rig.open()
        await append(log, batch_of([b"a"]))
        rig.manager.settings = LogManagerSettings(flush_check_interval_ms=0)
        task = asyncio.ensure_future(rig.manager.run())
        await until(lambda: log.flushed_offset == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
