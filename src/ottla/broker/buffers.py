"""Memory for requests that are still arriving.

A small frame is read into one buffer that all connections share, because it is handled before the loop turns
to the next connection. A large one gets a buffer of its own from this pool, so that its bytes are received
once, in place. Buffers are anonymous mappings: a client that announces 100 MB and sends 3 bytes costs a page.

The pool is bounded twice: by what may be lent at once (`queued.max.request.bytes`), above which a connection
is not read until others give back, and by what it keeps for reuse.
"""

from mmap import mmap

KEPT_BYTES = 64 * 1024 * 1024
GRAIN_BYTES = 256 * 1024


class BufferPool:
    """Lends buffers rounded up to a power of two of `GRAIN_BYTES`; single-threaded, like the loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.lent_bytes = 0
        self._kept_bytes = 0
        self._kept: dict[int, list[mmap]] = {}

    def lend(self, size_bytes: int) -> mmap | None:
        """A buffer of at least `size_bytes`, or None while too much is lent already.

        One buffer is always lent when nothing else is, so that a request larger than the limit can pass alone.
        """
        capacity = GRAIN_BYTES
        while capacity < size_bytes:
            capacity *= 2
        if self.lent_bytes and self.lent_bytes + capacity > self.limit_bytes:
            return None
        self.lent_bytes += capacity
        kept = self._kept.get(capacity)
        if kept:
            self._kept_bytes -= capacity
            return kept.pop()
        return mmap(-1, capacity)

    def give_back(self, buffer: mmap) -> None:
        capacity = len(buffer)
        self.lent_bytes -= capacity
        if self._kept_bytes + capacity <= KEPT_BYTES:
            self._kept_bytes += capacity
            self._kept.setdefault(capacity, []).append(buffer)
