"""Answers from files that have lost their descriptors, and cannot get another just now."""

import asyncio
import errno
import os
from pathlib import Path

import pytest
from tests.unit.broker.serving import InlineExecutor, frame, serving, until
from tests.unit.broker.test_connection_sending import FileAnswers

from ottla.runtime.real_disk import RealDisk, RealFile

CONTENT = os.urandom(300_000)


class ShortDisk(RealDisk):
    """The system has no descriptor for the next `refusals` times that it is asked."""

    refusals = 0

    def ask_for_descriptor(self, path: str, flags: int) -> int:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "too many open files", path)
        return super().ask_for_descriptor(path, flags)


@pytest.fixture
def disk() -> ShortDisk:
    return ShortDisk()


@pytest.fixture
def file(disk: ShortDisk, tmp_path: Path) -> RealFile:
    opened = disk.open(str(tmp_path / "segment.log"), create=True)
    opened.append([CONTENT])
    return opened


@pytest.mark.parametrize("length", [1000, len(CONTENT)])
@pytest.mark.parametrize("refusals", [0, 1, 5])
def test_the_answer_goes_on_when_there_is_a_descriptor(
    disk: ShortDisk, file: RealFile, length: int, refusals: int
) -> None:
    async def scenario() -> None:
        async with serving(FileAnswers(file, (0, length)), executor=InlineExecutor()) as running:
            peer, other = await running.connect(), await running.connect()
            disk.open_files.evict(1)
            disk.refusals = refusals
            await peer.send(frame(b"file") + frame(b"after"))
            assert await other.ask(b"other") == b"other"
            assert await peer.answer() == b"<" + CONTENT[:length] + b">"
            assert await peer.answer() == b"after"

    asyncio.run(scenario())
    assert not disk.refusals


def test_who_leaves_meanwhile_leaves_nothing_behind(disk: ShortDisk, file: RealFile) -> None:
    async def scenario() -> None:
        async with serving(FileAnswers(file, (0, 1000)), executor=InlineExecutor()) as running:
            peer, other = await running.connect(), await running.connect()
            disk.open_files.evict(1)
            disk.refusals = 1000
            await peer.send(frame(b"file"))
            assert await other.ask(b"other") == b"other"
            assert disk.refusals < 1000
            peer.socket.close()
            await until(lambda: len(running.server.connections) == 1)
            disk.refusals = 0
            assert await other.ask(b"file") == b"<" + CONTENT[:1000] + b">"

    asyncio.run(scenario())
