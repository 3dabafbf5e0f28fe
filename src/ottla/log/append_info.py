"""What a log says of a batch that it was given."""

from typing import NamedTuple


class AppendInfo(NamedTuple):
    """What became of a batch. A duplicate was not stored again: the offsets are those of the first time."""

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool
