"""Types that the record code shares with its callers."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview

RecordHeaders = Sequence[tuple[str, bytes | None]]
"""The headers of a record: names and values, in their order; a name may come more than once."""


class RecordLike(Protocol):
    """What a batch can be built from; `Record` is one. A timestamp of -1 means none of its own."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> Buffer | None: ...
    @property
    def value(self) -> Buffer | None: ...
    @property
    def headers(self) -> Iterable[tuple[str, Buffer | None]]: ...


class BinaryColumn(NamedTuple):
    """The buffers of one Arrow binary or string column with 32-bit offsets, or 64-bit ones if `is_wide`."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer | None
    null_count: int = 0
    first_row: int = 0
    is_wide: bool = False


class NumberColumn(NamedTuple):
    """The buffers of one Arrow column of 64-bit numbers."""

    validity: Buffer | None
    data: Buffer
    first_row: int = 0


class ListColumn(NamedTuple):
    """The buffers of one Arrow list column, without those of what is listed."""

    validity: Buffer | None
    offsets: Buffer
    first_row: int = 0
    is_wide: bool = False


class DecodedColumns(NamedTuple):
    """Records as Arrow buffers; one row for each record, and one for each header in the header columns."""

    row_count: int
    key: BinaryColumn
    value: BinaryColumn
    offset: Buffer
    timestamp: Buffer
    timestamp_type: Buffer
    header_offsets: Buffer
    header_count: int
    header_name: BinaryColumn
    header_value: BinaryColumn


class EncodedRows(NamedTuple):
    """The payload of one batch, made from the next rows of a table."""

    payload: Buffer
    row_count: int
    base_timestamp: int
    max_timestamp: int


class RunEnd(Enum):
    """Why a run of compaction over a buffer of batches ended: see `OffsetMap` and `BatchFilter`."""

    END = "end"
    LOOK = "look"
    FULL = "full"


class FilteredRecords(NamedTuple):
    """What compaction leaves of one payload, not compressed, and the fields of its header that change with it."""

    payload: bytes
    record_count: int
    base_timestamp: int
    max_timestamp: int
    attributes: int
