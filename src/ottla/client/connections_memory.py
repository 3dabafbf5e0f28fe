"""Memory for large answers, used again once nobody looks at it any more.

Fresh memory costs as much as the copy out of the kernel: it is cleared, and each of its pages is mapped. So a
connection keeps the last few pieces that it handed out. Whether somebody still looks at one, Python knows: a
`bytearray` refuses to change its size while there are views of it.
"""

KEPT_PIECES = 4
KEPT_BYTES = 96 * 1024 * 1024
WORTH_KEEPING_BYTES = 256 * 1024
_STEP_BYTES = 64 * 1024


class FrameMemory:
    """What must stay true: memory is handed out twice only if all views of it were gone in between."""

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def lend(self, size: int) -> memoryview:
        """`size` bytes, whatever they hold. They are the borrower's for as long as a view of them lives."""
        if size < WORTH_KEEPING_BYTES:
            return memoryview(bytearray(size))
        for piece in self._kept:
            if size <= len(piece) <= 2 * size and _is_free(piece):
                return memoryview(piece)[:size]
        piece = bytearray(-(-size // _STEP_BYTES) * _STEP_BYTES)
        self._keep(piece)
        return memoryview(piece)[:size]

    def _keep(self, piece: bytearray) -> None:
        """The oldest make room: for whoever still looks at them they live on."""
        self._kept.append(piece)
        while self._kept and (len(self._kept) > KEPT_PIECES or sum(map(len, self._kept)) > KEPT_BYTES):
            self._kept.pop(0)


def _is_free(piece: bytearray) -> bool:
    try:
        piece.pop()
    except BufferError:
        return False
    piece.append(0)
    return True
