"""The header of a batch as an object, in pure Python."""

from ottla.records.codec import Codec, codec_of_attributes

HEADER_BYTES = 61

_LOG_APPEND_TIME_BIT = 0x08
_TRANSACTIONAL_BIT = 0x10
_CONTROL_BIT = 0x20


class BatchHeader:
    """The header of one batch, as read; nothing here follows later changes of the bytes."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )

    def __init__(
        self,
        *,
        base_offset: int = 0,
        size_bytes: int = HEADER_BYTES,
        partition_leader_epoch: int = -1,
        magic: int = 2,
        crc: int = 0,
        attributes: int = 0,
        last_offset_delta: int = 0,
        base_timestamp: int = -1,
        max_timestamp: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        record_count: int = 0,
    ) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    @property
    def compression(self) -> Codec:
        return codec_of_attributes(self.attributes)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & _TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & _CONTROL_BIT != 0

    @property
    def has_log_append_time(self) -> bool:
        return self.attributes & _LOG_APPEND_TIME_BIT != 0

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; the numbers start again from 0 after 2^31 - 1."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    def _fields(self) -> tuple[int, ...]:
        return (
            self.base_offset,
            self.size_bytes,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return self._fields() == other._fields()

    def __repr__(self) -> str:
        return (
            f"BatchHeader(base_offset={self.base_offset}, size_bytes={self.size_bytes}, "
            f"partition_leader_epoch={self.partition_leader_epoch}, magic={self.magic}, crc={self.crc}, "
            f"attributes={self.attributes}, last_offset_delta={self.last_offset_delta}, "
            f"base_timestamp={self.base_timestamp}, max_timestamp={self.max_timestamp}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, "
            f"base_sequence={self.base_sequence}, record_count={self.record_count})"
        )
