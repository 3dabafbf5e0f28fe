"""What a connection still has to send: bytes, and ranges of files that go from the page cache with `sendfile`.

    enqueue -> flush -> sent
                |-> the socket is full: goes on when it is writable
                |-> the range is not in memory: goes on when the executor has read it
                |-> no descriptor is left to open its file with: goes on after a moment

What must stay true: parts leave whole and in order, and the loop never waits for a device. Each piece of a file is
checked to be in memory before it is sent; a piece that is not is read ahead first, off the loop.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable

from ottla.runtime import Executor, FileRange, is_shortage

Part = bytes | memoryview | FileRange
Parts = list[Part]

LIMIT_BYTES = 1024 * 1024
LIMIT_PARTS = 256
PIECE_BYTES = 1024 * 1024
SMALL_RANGE_BYTES = 64 * 1024
JOIN_BELOW_BYTES = 4096
SHORTAGE_PAUSE_SECONDS = 0.1
SENDMSG_CHUNKS = 512


class Outbox:
    """`went_on` is called after every step that did not happen inside a call of `flush`; `broken` when the peer or
    the file is gone."""

    __slots__ = (
        "_broken",
        "_descriptor",
        "_executor",
        "_loop",
        "_parts",
        "_range_sent",
        "_resident_until",
        "_socket",
        "_unsent_bytes",
        "_warming",
        "_went_on",
        "_writing",
        "closed",
    )

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        *,
        went_on: Callable[[], None],
        broken: Callable[[], None],
    ) -> None:
        self.closed = False
        self._socket = sock
        self._descriptor = sock.fileno()
        self._loop = loop
        self._executor = executor
        self._went_on = went_on
        self._broken = broken
        self._parts: deque[Part] = deque()
        self._unsent_bytes = 0
        self._range_sent = 0
        self._resident_until = 0
        self._writing = False
        self._warming = False

    def __bool__(self) -> bool:
        """Whether anything is unsent."""
        return bool(self._parts)

    @property
    def is_full(self) -> bool:
        return self._unsent_bytes >= LIMIT_BYTES or len(self._parts) >= LIMIT_PARTS

    @property
    def has_room(self) -> bool:
        """Well below full, so that a reader that was stopped does not stop again at once."""
        return self._unsent_bytes < LIMIT_BYTES // 2 and len(self._parts) < LIMIT_PARTS // 2

    def enqueue(self, parts: Parts) -> bool:
        """Queue what one answer consists of; True when that was enough for now (see `is_full`)."""
        for part in parts:
            self._parts.append(part)
            if not isinstance(part, FileRange):
                self._unsent_bytes += len(part)
        return self.is_full

    def flush(self) -> None:
        """Send what can be sent now; the rest follows by itself."""
        if self.closed or self._writing or self._warming:
            return
        parts = self._parts
        try:
            while parts:
                if self._send_bytes():
                    continue
                part = parts[0]
                assert isinstance(part, FileRange), "bytes are never left behind"
                if not self._send_range(part):
                    return
                parts.popleft()
        except (BlockingIOError, InterruptedError):
            self._writing = True
            self._loop.add_writer(self._descriptor, self._on_writable)
        except OSError as error:
            self._failed(error)

    def close(self) -> None:
        self.closed = True
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._descriptor)
        self._parts.clear()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._descriptor)
        self._writing = False
        self.flush()
        if not self._writing and not self._warming:
            self._went_on()

    def _send_bytes(self) -> bool:
        """Send the bytes, and the small ranges between them, up to the next large or cold range in one call.

        False when that comes first. A small answer leaves whole, so that its reader is woken once.
        """
        parts = self._parts
        chunks: list[bytes | bytearray | memoryview] = []
        total = 0
        while parts and total < LIMIT_BYTES:
            part = parts[0]
            if isinstance(part, FileRange):
                data = part.file.read_resident(part.position, part.length) if self._is_small(part) else None
                if data is None:
                    break
                self._resident_until = 0
                self._unsent_bytes += part.length
                chunks.append(data)
            else:
                chunks.append(part)
            total += len(chunks[-1])
            parts.popleft()
        if not chunks:
            return False
        more = socket.MSG_MORE if parts else 0
        sent = 0
        try:
            if len(chunks) > 1 and total < JOIN_BELOW_BYTES:
                chunks = [b"".join(chunks)]
            if len(chunks) == 1:
                sent = self._socket.send(chunks[0], more)
            else:
                sent = self._socket.sendmsg(chunks[:SENDMSG_CHUNKS], (), more)
        finally:
            self._unsent_bytes -= sent
            if sent < total:
                rest = chunks[0] if len(chunks) == 1 else b"".join(chunks)
                parts.appendleft(memoryview(rest)[sent:])
        return True

    def _is_small(self, part: FileRange) -> bool:
        return part.length <= SMALL_RANGE_BYTES and not self._range_sent

    def _send_range(self, part: FileRange) -> bool:
        """Send a piece of a file from the page cache; False when the disk must be asked first."""
        file = part.file
        while self._range_sent < part.length:
            position = part.position + self._range_sent
            if position >= self._resident_until:
                piece = min(part.length - self._range_sent, PIECE_BYTES)
                self._resident_until = position + piece
                if not file.is_resident(position, piece):
                    self._read_ahead(part, position, piece)
                    return False
            sent = file.send(self._descriptor, position, self._resident_until - position)
            if not sent:
                raise OSError(f"{file.path} ends inside the {part.length} bytes at {part.position}")
            self._range_sent += sent
        self._range_sent = 0
        self._resident_until = 0
        return True

    def _read_ahead(self, part: FileRange, position: int, length: int) -> None:
        self._warming = True
        future = asyncio.ensure_future(self._executor.run(part.file.read_at, position, length))
        future.add_done_callback(self._read)

    def _read(self, future: asyncio.Future[bytes]) -> None:
        self._warming = False
        if self.closed:
            if not future.cancelled():
                future.exception()
            return
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or error is not None:
            self._failed(error)
            return
        self._go_on()

    def _failed(self, error: BaseException | None) -> None:
        """The peer or the file is gone; or there is no descriptor for the file just now, which passes."""
        if not is_shortage(error):
            self._broken()
            return
        self._warming = True
        self._resident_until = 0
        self._loop.call_later(SHORTAGE_PAUSE_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._warming = False
        if not self.closed:
            self._go_on()

    def _go_on(self) -> None:
        self.flush()
        if not self._writing and not self._warming:
            self._went_on()
