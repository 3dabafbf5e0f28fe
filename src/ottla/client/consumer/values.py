"""Small values of the consumer that its twins, its state machines and its users share."""

from enum import IntEnum
from typing import NamedTuple, Protocol

from ottla.client.membership.interface import NO_GENERATION
from ottla.client.types import TopicPartition
from ottla.records import BatchHeader

NO_TIMESTAMP = -1
NO_EPOCH = -1
NO_OFFSET = -1


class TimestampType(IntEnum):
    """Who gave a record its timestamp: its producer, or the broker when it was appended."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ChunkMode(IntEnum):
    """READY to be handed out, HELD back for now (paused, or its place in the log is in doubt), or DROPPED for good."""

    READY = 0
    HELD = 1
    DROPPED = 2


class Entry(NamedTuple):
    """A batch whose records are to be handed out: where it lies in its chunk, and the offset that follows it and all
    batches behind it that have nothing for the user."""

    start: int
    end: int
    header: BatchHeader
    next_offset: int


class OffsetSpec(IntEnum):
    """The offsets that can be asked for by ListOffsets instead of a time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


class GroupMetadata(NamedTuple):
    """Who a consumer is in its group: a transactional producer commits offsets on its behalf with this."""

    group_id: str
    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


class RebalanceListener(Protocol):
    """What a user may hand to `subscribe`. Each method is a plain one or a coroutine, and all are called while the
    user waits in the consumer, never beside the user's own code.

    `on_revoked`: the partitions are still the consumer's, so that work on them can be committed. `on_lost`: somebody
    else may have them already. `on_assigned`: they will be read from now on.
    """

    def on_revoked(self, partitions: list[TopicPartition]) -> object: ...

    def on_lost(self, partitions: list[TopicPartition]) -> object: ...

    def on_assigned(self, partitions: list[TopicPartition]) -> object: ...
