"""The values that users of the client hand in and get back."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RecordMetadata(NamedTuple):
    """Where a record was written. `offset` is -1 where nobody waited for an answer (`acks=0`).

    `timestamp` is in milliseconds: the one the record was sent with, or the broker's where the topic has
    `message.timestamp.type=LogAppendTime`.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class OffsetAndMetadata(NamedTuple):
    """A committed position: the offset of the next record to be read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int = -1


class StagedTransaction(NamedTuple):
    """A transaction whose records are all written and which nobody has ended: whoever has this can end it, from any
    process, with `Admin.end_transactions`. It stays open until then, or until its producer's `transaction.timeout.ms`
    is over."""

    transactional_id: str
    producer_id: int
    epoch: int
