"""What is written into `__transaction_state`, in Kafka's own format: one key for each transactional id."""

from ottla.ledger.entries import LedgerKey, LedgerValue, RecordTypes
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Struct, field


class TransactionLogKey(LedgerKey, record_type=0):
    transactional_id: str = field("0")


class PartitionsSchema(Struct):
    topic: str = field("0+")
    partition_ids: list[Int32] = field("0+")


class TransactionLogValue(LedgerValue, of=TransactionLogKey, versions=(0, 1), flexible=1):
    producer_id: Int64 = field("0+")
    previous_producer_id: Int64 = field("1+", tag=0, default=-1)
    next_producer_id: Int64 = field("1+", tag=1, default=-1)
    producer_epoch: Int16 = field("0+")
    next_producer_epoch: Int16 = field("1+", tag=3, default=-1)
    transaction_timeout_ms: Int32 = field("0+")
    transaction_status: Int8 = field("0+")
    transaction_partitions: list[PartitionsSchema] | None = field("0+", nullable="0+")
    transaction_last_update_timestamp_ms: Int64 = field("0+")
    transaction_start_timestamp_ms: Int64 = field("0+")
    client_transaction_version: Int16 = field("1+", tag=2)


TRANSACTION_RECORD_TYPES = RecordTypes([TransactionLogKey])
