"""What an error of a broker means for a batch, and other rules of sending that need no state."""

from typing import TYPE_CHECKING, Protocol

from ottla.client.cluster import Cluster
from ottla.client.config import ProducerConfig
from ottla.client.errors import DeliveryTimeout, OttlaError
from ottla.client.producer.batches import Batch
from ottla.protocol.errors import ErrorCode
from ottla.runtime import IdSource

if TYPE_CHECKING:
    from ottla.client.producer.partitions import PartitionQueue

_JITTER_PERCENT = 20
_LZ4_FAST = 9

STALE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.LISTENER_NOT_FOUND,
    ErrorCode.NETWORK_EXCEPTION,
}
"""Errors that say that what is known of the cluster is out of date."""

UNCERTAIN = {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
"""Errors after which the records may be in the log nevertheless."""

_ADVICE = {
    ErrorCode.MESSAGE_TOO_LARGE: "raise the topic's max.message.bytes, or send smaller records",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the principal needs WRITE on the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the principal needs IDEMPOTENT_WRITE, or set enable.idempotence=false",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer with this transactional.id has taken over: make a new one",
    ErrorCode.PRODUCER_FENCED: "another producer with this transactional.id has taken over: make a new one",
    ErrorCode.INVALID_RECORD: "see the message; a compacted topic needs keys",
    ErrorCode.INVALID_TIMESTAMP: "the timestamp is outside of what the topic allows",
}


def text_of(code: ErrorCode, message: str | None, batch: Batch) -> str:
    """What a user reads about a batch that a broker refused."""
    said = f"{batch.queue!r}: {code.name}" + (f": {message}" if message else "")
    return f"{said}; {_ADVICE[code]}" if code in _ADVICE else said


def expired(batch: Batch, now: float) -> DeliveryTimeout:
    """What a user reads about a batch whose time is over."""
    waited_ms = round((now - batch.created_at) * 1000)
    reason = batch.last_failure or "no answer came"
    if batch.attempts:
        reason = f"{batch.attempts} attempts failed, the last with {reason}"
    return DeliveryTimeout(
        f"{batch.count} records for {batch.queue!r} were not acknowledged within {waited_ms} ms "
        f"(delivery.timeout.ms): {reason}"
    )


def backoff_seconds(config: ProducerConfig, attempt: int, ids: IdSource) -> float:
    """The wait before the next try: doubled from attempt to attempt, with some chance in it."""
    pause_ms = min(config.retry_backoff_ms << min(attempt - 1, 20), config.retry_backoff_max_ms)
    jitter = 100 - _JITTER_PERCENT + ids.below(2 * _JITTER_PERCENT + 1)
    return pause_ms * jitter / 100_000


def level_of(config: ProducerConfig) -> int | None:
    """The level for the codec; None for its own default. lz4's 9 is Kafka's word for the fast compressor."""
    if config.compression_type == "gzip":
        return None if config.compression_gzip_level == -1 else config.compression_gzip_level
    if config.compression_type == "lz4":
        return None if config.compression_lz4_level == _LZ4_FAST else config.compression_lz4_level
    return config.compression_zstd_level if config.compression_type == "zstd" else None


class Surroundings(Protocol):
    """What the sender is told by the producer around it. `is_ready`: whether a request to a broker would leave at once;
    where not, there is another turn when it would."""

    @property
    def cluster(self) -> Cluster: ...

    def request_update(self) -> None: ...

    def is_ready(self, node_id: int) -> bool: ...


class TransactionRules(Protocol):
    """What a transaction has to say about sending."""

    def may_send(self, queue: "PartitionQueue") -> bool: ...

    def batch_failed(self, error: OttlaError) -> None: ...
