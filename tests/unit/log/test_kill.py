"""A process with a log on the real disk, killed in the middle of its work, again and again."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.unit.log.support import Rig, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.records import read_records
from ottla.runtime.real_disk import RealDisk

ROUNDS = 3
SEGMENT_BYTES = 30_000

# Appends numbered records for ever; after each flush it says up to where everything is on the device.
WRITER = """
import asyncio, sys
from tests.unit.log.support import Rig, append, batch_of
from ottla.log.config import LogConfig
from ottla.runtime.real import ThreadExecutor
from ottla.runtime.real_disk import RealDisk

async def main():
    rig = Rig(LogConfig(segment_bytes=int(sys.argv[2])), disk=RealDisk(), path=sys.argv[1], executor=ThreadExecutor())
    log = await rig.open()
    while True:
        for _ in range(50):
            await append(log, batch_of([b"%d" % log.log_end_offset]))
        await log.flush()
        await rig.manager.checkpoint_recovery_points()
        print(log.flushed_offset, flush=True)

asyncio.run(main())
"""


def write_until_killed(directory: Path, lines: int) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(directory), str(SEGMENT_BYTES)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert writer.stdout is not None
    flushed = 0
    for _ in range(lines):
        flushed = int(writer.stdout.readline())
    writer.kill()
    rest = writer.communicate()[0].split()
    return int(rest[-1]) if rest else flushed


def test_every_flushed_record_is_there_after_a_kill(tmp_path: Path) -> None:
    async def check(flushed: int) -> None:
        rig = Rig(LogConfig(segment_bytes=SEGMENT_BYTES), disk=RealDisk(), path=str(tmp_path))
        log = await rig.open()
        assert not rig.directory.was_clean
        assert log.log_end_offset >= flushed
        values = [record.value for record in read_records(read_all(log))]
        assert values == [b"%d" % number for number in range(log.log_end_offset)]
        log.close_files()
        rig.directory.close()

    for round_number in range(ROUNDS):
        flushed = write_until_killed(tmp_path, 10 + round_number)
        assert flushed >= 500
        asyncio.run(check(flushed))
    assert len(list((tmp_path / "events-0").glob("*.log"))) > 2
    # A torn batch at the end, as a kill in the middle of a write leaves it.
    last = max((tmp_path / "events-0").glob("*.log"))
    with last.open("ab") as file:
        file.write(bytes(batch_of([b"torn"]))[:-2])
    asyncio.run(check(flushed))
