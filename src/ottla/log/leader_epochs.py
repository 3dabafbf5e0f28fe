"""Which leader epoch began at which offset.

Followers ask where an epoch ended to find out where their log and the leader's part ways, so the entries must rise
in both epoch and offset, and must never name an offset that the log does not have.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The cache of one log, which tells it by `log_end_offset` where the latest epoch ends.

    `changed` says that the checkpoint file is older than this.
    """

    __slots__ = ("_epochs", "_start_offsets", "changed", "latest_epoch", "log_end_offset")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        self.latest_epoch = UNDEFINED_EPOCH
        self.log_end_offset: Callable[[], int] = lambda: UNDEFINED_OFFSET
        for epoch, start_offset in entries or ():
            self.assign(epoch, start_offset)
        self.changed = False

    def __len__(self) -> int:
        return len(self._epochs)

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def entries_below(self, offset: int) -> list[tuple[int, int]]:
        """The epochs that begin below an offset."""
        return self.entries()[: bisect_left(self._start_offsets, offset)]

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`; entries that contradict it are dropped, the newer one is right.

        A repetition of the latest epoch changes nothing unless it begins earlier than was known.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"a leader epoch and its start offset are not negative: {epoch} at {start_offset}")
        epochs, starts = self._epochs, self._start_offsets
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self._touch()

    def _touch(self) -> None:
        self.changed = True
        self.latest_epoch = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """(the largest known epoch that is at most `epoch`, the offset where it ended), or both -1 when unknown.

        The latest epoch ends at the log's end. An epoch before the first one known ends where that one begins.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, self.log_end_offset()
        following = bisect_right(self._epochs, epoch)
        if following == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        found = self._epochs[following - 1] if following else epoch
        return found, self._start_offsets[following]

    def epoch_for(self, offset: int) -> int:
        """The epoch that an offset belongs to, or -1."""
        slot = bisect_right(self._start_offsets, offset)
        return self._epochs[slot - 1] if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after the log's new end."""
        slot = len(self._start_offsets)
        while slot and self._start_offsets[slot - 1] >= end_offset:
            slot -= 1
        if slot != len(self._start_offsets):
            del self._epochs[slot:], self._start_offsets[slot:]
            self._touch()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs before the log's new start; the one that covers it now begins there."""
        slot = bisect_right(self._start_offsets, start_offset)
        if slot and (slot > 1 or self._start_offsets[0] != start_offset):
            del self._epochs[: slot - 1], self._start_offsets[: slot - 1]
            self._start_offsets[0] = start_offset
            self._touch()
