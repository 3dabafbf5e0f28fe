"""Writing again what may not be on the device, after a broker that did not stop cleanly.

A sync that fails leaves pages in memory that count as written though the device does not have them, and a later sync of
the same pages succeeds without writing anything. So a broker that starts after such a failure must not believe a sync
of bytes that it merely read: it writes them once more first. Where nothing is promised about the device that is not
needed, and logs that promise it have little unflushed.
"""

from ottla.log.log import Log
from ottla.runtime import Executor, File

PIECE_BYTES = 1024 * 1024


async def rewrite_unflushed(log: Log, executor: Executor) -> None:
    """Make the next flush of a log that nobody uses yet write everything above its recovery point."""
    segments, start_offset = log.segments, log.recovery_point
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= start_offset:
            continue
        if start_offset < log.log_end_offset:
            await executor.run(_rewrite, segment.file, segment.position_of(max(start_offset, segment.base_offset)))


def _rewrite(file: File, position: int) -> None:
    while position < file.size:
        piece = file.read_at(position, PIECE_BYTES)
        file.write_at(position, piece)
        position += len(piece)
