"""Bounds the memory that indexes of closed segments take."""

from typing import Protocol

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024


class _Holder(Protocol):
    def drop_indexes(self) -> None: ...


class IndexCache:
    """Least recently used first: shared by all logs, so that a reader of old data cannot fill the memory.

    The indexes of active segments are not in here; they are needed all the time.
    """

    __slots__ = ("_limit_bytes", "_sizes", "used_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._sizes: dict[_Holder, int] = {}
        self.used_bytes = 0

    def admit(self, holder: _Holder, size_bytes: int) -> None:
        """The holder has its indexes in memory; others give theirs back until all fit, the newest always stays."""
        self.forget(holder)
        self._sizes[holder] = size_bytes
        self.used_bytes += size_bytes
        while self.used_bytes > self._limit_bytes and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.forget(oldest)
            oldest.drop_indexes()

    def touch(self, holder: _Holder) -> None:
        size_bytes = self._sizes.pop(holder, None)
        if size_bytes is not None:
            self._sizes[holder] = size_bytes

    def forget(self, holder: _Holder) -> None:
        size_bytes = self._sizes.pop(holder, None)
        if size_bytes is not None:
            self.used_bytes -= size_bytes
