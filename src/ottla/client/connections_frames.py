"""The frames of one connection: bytes in, whole frames out.

    room -> the socket receives into it -> take: all frames that are whole by then

What must stay true:
- A small frame is a copy: what is left in the buffer moves, and the next bytes come where it was.
- A large one is received into memory of its own, allocated once its length is known, and is handed out in place.
- A length that no frame has is told after the frames before it, which are whole.
"""

import struct

from ottla.client.connections_answers import bad_length
from ottla.client.connections_memory import FrameMemory
from ottla.client.errors import InvalidAnswer

SMALL_BUFFER_BYTES = 64 * 1024
OWN_MEMORY_ABOVE_BYTES = 16 * 1024

_INT32 = struct.Struct(">i")


class Frames:
    """`problem` is what is wrong with the bytes behind the frames that were taken: the end of the connection."""

    __slots__ = ("_buffer", "_filled", "_large", "_large_filled", "_limit_bytes", "_memory", "problem")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = memoryview(bytearray(SMALL_BUFFER_BYTES))
        self._filled = 0
        self._memory = FrameMemory()
        self._large: memoryview | None = None
        self._large_filled = 0
        self.problem: InvalidAnswer | None = None

    def room(self) -> memoryview:
        """Where the next bytes go."""
        if self._large is not None:
            return self._large[self._large_filled :]
        return self._buffer[self._filled :] if self._filled else self._buffer

    def take(self, count: int) -> list[memoryview]:
        """So many bytes came: the frames that are whole now. They are the caller's, who may make room for more before
        it is done with them."""
        large = self._large
        if large is None:
            self._filled += count
            return self._cut()
        self._large_filled += count
        if self._large_filled < len(large):
            return []
        self._large = None
        return [large]

    def give_up(self) -> None:
        """Nothing more comes: the large frame that was begun keeps no memory."""
        self._large = None

    def _cut(self) -> list[memoryview]:
        """Take the whole frames out of the buffer; what is left of the last one moves to the front, or elsewhere."""
        buffer, position, end = self._buffer, 0, self._filled
        frames: list[memoryview] = []
        while end - position >= 4:
            (size,) = _INT32.unpack_from(buffer, position)
            if not 4 <= size <= self._limit_bytes:
                beginning = bytes(buffer[position : min(end, position + 5)])
                self.problem = InvalidAnswer(bad_length(beginning, size, self._limit_bytes))
                break
            start, stop = position + 4, position + 4 + size
            if stop > end:
                if size > OWN_MEMORY_ABOVE_BYTES:
                    self._large = self._memory.lend(size)
                    self._large_filled = end - start
                    self._large[: end - start] = buffer[start:end]
                    position = end
                break
            frames.append(memoryview(bytes(buffer[start:stop])))
            position = stop
        left = end - position
        if position and left:
            buffer[:left] = bytes(buffer[position:end])
        self._filled = left
        return frames
