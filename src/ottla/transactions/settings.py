"""How transactions are run, from the broker's settings; the names are Kafka's keys with underscores."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """`verification_wait_ms` is Kafka's `add.partitions.to.txn.retry.backoff.max.ms`: how long a batch may wait for the
    transaction before its own to be complete."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_min_isr: int = 2
    transaction_state_log_segment_bytes: int = 104_857_600
    verification_wait_ms: int = 100
