"""Settings of all logs of a broker."""

from dataclasses import dataclass

from ottla.log.index_cache import DEFAULT_LIMIT_BYTES


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Broker-wide settings of the logs, by Kafka's names with underscores."""

    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    log_retention_check_interval_ms: int = 300_000
    flush_check_interval_ms: int = 100
    index_cache_bytes: int = DEFAULT_LIMIT_BYTES
