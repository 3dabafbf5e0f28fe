"""A process without descriptors: what needs one is refused with a typed error, nothing is lost, and later it works."""

import asyncio
import contextlib
import errno
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.unit.log.aging import DAY_MS, filled, names, numbers, settings, values
from tests.unit.log.compacting import CompactingRig
from tests.unit.log.support import START_MS, TOPIC, Rig, append, batch_of

from ottla.log.log import Log
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.testing import MemoryDisk

NEED_DESCRIPTORS = frozenset(
    ("open", "read", "write_atomically", "list_directory", "rename", "delete_directory", "sync_directory")
)


class ShortDisk(MemoryDisk):
    """No file, once let go, can be opened while it `is_short`; or only one, the one that `fails_at` counts down to."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms)
        self.is_short = False
        self.fails_at = -1

    def check_fault(self, operation: str, path: str) -> None:
        if operation in NEED_DESCRIPTORS:
            self.fails_at -= 1
            if self.is_short or self.fails_at == -1:
                raise OSError(errno.EMFILE, "too many open files", path)
        super().check_fault(operation, path)

    def run_short(self) -> None:
        self.open_files.evict(1000)
        self.is_short = True


def on_short_disk(rig: Rig) -> ShortDisk:
    disk = ShortDisk(rig.clock.now_ms)
    rig.disk = rig.memory_disk = disk
    return disk


async def refused(work: Awaitable[object]) -> None:
    with pytest.raises(KafkaError) as caught:
        await work
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


async def read(log: Log, offset: int) -> object:
    return log.read(offset, 1000, up_to_offset=log.log_end_offset)


def test_reads_appends_rolls_and_flushes_are_refused_and_work_later() -> None:
    async def scenario() -> None:
        rig = Rig(settings())
        disk = on_short_disk(rig)
        log = await filled(rig)
        disk.run_short()
        await refused(append(log, batch_of([b"xx"])))
        await refused(read(log, 0))
        await refused(read(log, 8))
        await refused(log.roll())
        await refused(log.flush())
        with pytest.raises(OSError, match="too many"):
            await log.offset_for_timestamp(START_MS)
        await rig.manager.checkpoint_recovery_points()
        await rig.manager.checkpoint_high_watermarks()
        assert rig.directory.failure is None
        disk.is_short = False
        await log.flush()
        assert log.flushed_offset == 9
        await log.roll()
        assert (await append(log, batch_of([b"09"]))).first_offset == 9
        assert (await log.offset_for_timestamp(START_MS)) is not None
        assert values(log) == numbers(0, 10)
        await rig.manager.checkpoint_high_watermarks()
        await rig.restart()
        assert values(rig.log) == numbers(0, 10)
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_a_log_that_cannot_be_created_now_is_created_later() -> None:
    async def scenario() -> None:
        rig = Rig()
        disk = on_short_disk(rig)
        await rig.open()
        for attempt in range(12):
            disk.fails_at = attempt
            # The later attempts have all the descriptors that they need.
            with contextlib.suppress(KafkaError):
                await rig.manager.create_log("other", attempt, bytes(16), rig.config)
            disk.fails_at = -1
            log = await rig.manager.create_log("other", attempt, bytes(16), rig.config)
            assert (await append(log, batch_of([b"first"]))).first_offset == 0
        assert rig.directory.failure is None
        await rig.manager.shutdown()

    asyncio.run(scenario())


@pytest.mark.parametrize("attempt", range(30))
def test_retention_goes_on_where_it_was_refused(attempt: int) -> None:
    async def scenario() -> None:
        rig = Rig(settings(retention_ms=DAY_MS))
        disk = on_short_disk(rig)
        log = await filled(rig)
        rig.clock.advance(2 * DAY_MS)
        await append(log, batch_of([b"09"], timestamp=rig.clock.now_ms()), now_ms=rig.clock.now_ms())
        log.high_watermark = 10
        disk.fails_at = attempt
        await rig.manager.apply_retention()
        disk.fails_at = -1
        assert rig.directory.failure is None
        await rig.manager.apply_retention()
        for _ in range(10):
            await asyncio.sleep(0)
        assert values(log)[-1] == b"09"
        assert log.log_start_offset == 8
        assert names(rig, ".deleted") == []
        assert names(rig, ".log") == [f"{8:020d}.log"]
        await rig.restart()
        assert values(rig.log) == numbers(8, 10)
        await rig.manager.shutdown()

    asyncio.run(scenario())


@pytest.mark.parametrize("attempt", range(0, 60, 2))
def test_compaction_goes_on_where_it_was_refused(attempt: int) -> None:
    async def scenario() -> None:
        rig = CompactingRig(segment_bytes=400)
        disk = on_short_disk(rig)
        await rig.open()
        for number in range(30):
            await rig.write((b"k%d" % (number % 4), b"%d" % number))
        disk.open_files.evict(1000)
        disk.fails_at = attempt
        while await rig.cleaner.clean_dirtiest():
            pass
        disk.fails_at = -1
        assert rig.directory.failure is None
        assert rig.cleaner.uncleanable(rig.directory) == (0, 0)
        await rig.clean()
        latest = [(number, b"k%d" % (number % 4), b"%d" % number) for number in range(26, 30)]
        assert rig.content() == latest
        await rig.restart()
        assert rig.content() == latest
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_a_deleted_log_goes_when_there_is_a_descriptor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.log.deletion._RETRY_SECONDS", 0)

    async def scenario() -> None:
        rig = Rig(replace(settings(), file_delete_delay_ms=0))
        disk = on_short_disk(rig)
        await filled(rig)
        await rig.manager.delete_log(TOPIC, 0)
        disk.run_short()
        for _ in range(10):
            await asyncio.sleep(0)
        disk.is_short = False
        assert any(name.endswith("-delete") for name in disk.list_directory(rig.path))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(name.endswith("-delete") for name in disk.list_directory(rig.path))
        assert rig.directory.failure is None
        await rig.manager.shutdown()

    asyncio.run(scenario())


def test_what_an_undeleted_topic_left_behind_is_not_the_new_topics() -> None:
    """The directory could not be renamed when its topic was deleted; another one of that name begins empty."""

    async def scenario() -> None:
        rig = Rig(settings())
        disk = on_short_disk(rig)
        await filled(rig)
        disk.run_short()
        await refused(rig.manager.delete_log(TOPIC, 0))
        disk.is_short = False
        log = await rig.manager.create_log(TOPIC, 0, b"another topic id", rig.config)
        assert (log.log_start_offset, log.log_end_offset) == (0, 0)
        assert log.topic_id == b"another topic id"
        assert rig.directory.failure is None
        await rig.manager.shutdown()

    asyncio.run(scenario())
