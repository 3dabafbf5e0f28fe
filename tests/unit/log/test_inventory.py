"""What a start makes of logs that are found in two places, or in one that is not certain."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.log.moving import ONE, TWO, MovingRig
from tests.unit.log.support import NODE_ID, TOPIC, TOPIC_ID, read_all

from ottla.log.directory import LogDirectory
from ottla.log.manager import LogManager
from ottla.log.moving import MOVE_TARGET, mark_moved
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.testing import MemoryDisk

UNIQUE = "0123456789abcdef" * 2
LOG, FUTURE = f"{TOPIC}-0", f"{TOPIC}-0.{UNIQUE}-future"


def copy(disk: MemoryDisk, source: str, target: str, *, is_target: bool) -> None:
    disk.make_directory(target)
    for name in disk.list_directory(source):
        disk.write_atomically(f"{target}/{name}", disk.read(f"{source}/{name}"))
    if is_target:
        disk.write_atomically(f"{target}/{MOVE_TARGET}", UNIQUE.encode())


async def stopped(prepare: Callable[[MemoryDisk], None]) -> tuple[MovingRig, bytes]:
    """A broker that ended, with what a test adds on its disks, and what its log held."""
    rig = MovingRig()
    log = await rig.open()
    for number in range(10):
        await rig.write((b"k", b"%d" % number + b"x" * 80))
    content = read_all(log)
    await rig.manager.shutdown()
    prepare(rig.disk)
    return rig, content


def left_for_a_future(disk: MemoryDisk) -> None:
    copy(disk, f"{ONE}/{LOG}", f"{TWO}/{FUTURE}", is_target=True)
    mark_moved(disk, f"{ONE}/{LOG}", UNIQUE)


def left_for_one_that_has_the_name(disk: MemoryDisk) -> None:
    copy(disk, f"{ONE}/{LOG}", f"{TWO}/{LOG}", is_target=True)
    mark_moved(disk, f"{ONE}/{LOG}", UNIQUE)


def left_for_one_that_has_settled_in(disk: MemoryDisk) -> None:
    copy(disk, f"{ONE}/{LOG}", f"{TWO}/{LOG}", is_target=False)
    mark_moved(disk, f"{ONE}/{LOG}", UNIQUE)


def called_off(disk: MemoryDisk) -> None:
    copy(disk, f"{ONE}/{LOG}", f"{TWO}/{LOG}", is_target=True)


def only_the_copy(disk: MemoryDisk) -> None:
    copy(disk, f"{ONE}/{LOG}", f"{TWO}/{LOG}", is_target=True)
    disk.delete_directory(f"{ONE}/{LOG}")


def only_the_one_that_left(disk: MemoryDisk) -> None:
    mark_moved(disk, f"{ONE}/{LOG}", UNIQUE)


def left_for_another_future(disk: MemoryDisk) -> None:
    """A copy with other characters is of an earlier move."""
    copy(disk, f"{ONE}/{LOG}", f"{TWO}/{TOPIC}-0.{'9' * 32}-future", is_target=True)
    mark_moved(disk, f"{ONE}/{LOG}", UNIQUE)


@pytest.mark.parametrize(
    ("prepare", "place", "futures"),
    [
        (left_for_a_future, TWO, 0),
        (left_for_one_that_has_the_name, TWO, 0),
        (left_for_one_that_has_settled_in, TWO, 0),
        (called_off, ONE, 0),
        (only_the_copy, TWO, 0),
        (only_the_one_that_left, ONE, 0),
        (left_for_another_future, ONE, 1),
    ],
)
def test_with_all_directories(prepare: Callable[[MemoryDisk], None], place: str, futures: int) -> None:
    async def run() -> None:
        rig, content = await stopped(prepare)
        for _ in range(2):
            log = await rig.open()
            assert (rig.place(), read_all(log), log.topic_id) == (place, content, TOPIC_ID)
            assert len(rig.names(ONE) + rig.names(TWO)) == 1 + futures
            names = rig.disk.list_directory(f"{place}/{LOG}")
            assert "partition.metadata" in names
            assert not [name for name in names if "move" in name]
            await rig.manager.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize(("prepare", "kept"), [(only_the_copy, TWO), (only_the_one_that_left, ONE)])
def test_what_is_not_certain_is_not_opened_while_a_directory_is_missing(
    prepare: Callable[[MemoryDisk], None], kept: str
) -> None:
    async def run() -> None:
        rig, content = await stopped(prepare)
        directories = [LogDirectory(rig.disk, path) for path in (ONE, TWO)]
        for directory in directories:
            directory.open(NODE_ID, rig.ids, directories[0].cluster_id or None)
        manager = LogManager(
            directories, disk=rig.disk, clock=rig.clock, executor=rig.executor, ids=rig.ids, is_missing_some=True
        )
        await manager.load(lambda topic: rig.config)
        assert manager.get(TOPIC, 0) is None
        with pytest.raises(KafkaError) as refused:
            await manager.create_log(TOPIC, 0, TOPIC_ID, rig.config, is_new=False)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        await manager.shutdown()
        assert rig.names(kept) == [LOG]
        # It is all there when the directory is back.
        log = await rig.open()
        assert read_all(log) == content
        await rig.manager.shutdown()

    asyncio.run(run())


def test_two_without_a_sign_are_nobodys_guess() -> None:
    async def run() -> None:
        rig, _ = await stopped(lambda disk: copy(disk, f"{ONE}/{LOG}", f"{TWO}/{LOG}", is_target=False))
        with pytest.raises(OSError, match="two log directories"):
            await rig.open()

    asyncio.run(run())
