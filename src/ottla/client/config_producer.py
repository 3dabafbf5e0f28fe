"""The settings of a producer."""

import logging
from dataclasses import dataclass, replace
from typing import Any, Self

from ottla.client.config_client import ClientConfig
from ottla.client.config_settings import INT32_MAX, NOT_EMPTY, Check, Kind, at_least, between, one_of, setting
from ottla.client.errors import ConfigError

logger = logging.getLogger(__name__)

_BOOLEAN, _INT, _LONG, _STRING, _OBJECT = Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.STRING, Kind.OBJECT
_IN_FLIGHT_WITH_IDEMPOTENCE = 5
_ZSTD_LOWEST = -131_072
_GZIP_DEFAULT = -1


@dataclass(frozen=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """The settings of a producer. `acks` is a number: -1 for all."""

    client_id: str = setting("client.id", _STRING, "ottla-producer", "A name for quotas, metrics and logs.")
    acks: int = setting(
        "acks", Kind.ACKS, -1, "Who must have a record before it counts as sent: all in-sync, leader, none."
    )
    key_serializer: Any = setting("key.serializer", _OBJECT, None, "Turns keys into bytes.")
    value_serializer: Any = setting("value.serializer", _OBJECT, None, "Turns values into bytes.")
    linger_ms: int = setting("linger.ms", _LONG, 5, "How long a batch waits for more records.", at_least(0))
    batch_size: int = setting(
        "batch.size", _INT, 16_384, "The size of a batch, in bytes; 0 is no batches.", at_least(0)
    )
    buffer_memory: int = setting(
        "buffer.memory", _LONG, 33_554_432, "Bytes of records that may wait to be sent.", at_least(0)
    )
    max_block_ms: int = setting(
        "max.block.ms", _LONG, 60_000, "How long send may wait for room or for metadata.", at_least(0)
    )
    max_request_size: int = setting("max.request.size", _INT, 1_048_576, "The largest request, in bytes.", at_least(0))
    max_in_flight_requests_per_connection: int = setting(
        "max.in.flight.requests.per.connection",
        _INT,
        5,
        "How many requests may wait for an answer of one broker.",
        at_least(1),
        aliases=("max.in.flight",),
    )
    delivery_timeout_ms: int = setting(
        "delivery.timeout.ms", _INT, 120_000, "When a record that was not acknowledged counts as failed.", at_least(0)
    )
    enable_idempotence: bool = setting(
        "enable.idempotence", _BOOLEAN, True, "Whether retries never write a record twice."
    )
    transactional_id: str | None = setting("transactional.id", _STRING, None, "Makes transactions possible.", NOT_EMPTY)
    transaction_timeout_ms: int = setting(
        "transaction.timeout.ms", _INT, 60_000, "When the broker aborts a transaction by itself.", at_least(1)
    )
    compression_type: str = setting(
        "compression.type",
        _STRING,
        "none",
        "How batches are compressed.",
        one_of("none", "gzip", "snappy", "lz4", "zstd"),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        _INT,
        _GZIP_DEFAULT,
        "How hard gzip tries.",
        Check(lambda value: value == _GZIP_DEFAULT or 1 <= value <= 9, "from 1 to 9, or -1 for the default"),
    )
    compression_lz4_level: int = setting("compression.lz4.level", _INT, 9, "How hard lz4 tries.", between(1, 17))
    compression_zstd_level: int = setting(
        "compression.zstd.level", _INT, 3, "How hard zstd tries.", between(_ZSTD_LOWEST, 22)
    )
    partitioner_class: Any = setting(
        "partitioner.class", _OBJECT, None, "Chooses partitions in place of the default.", aliases=("partitioner",)
    )
    partitioner_ignore_keys: bool = setting(
        "partitioner.ignore.keys", _BOOLEAN, False, "Whether keys have no say in the partition."
    )
    partitioner_adaptive_partitioning_enable: bool = setting(
        "partitioner.adaptive.partitioning.enable",
        _BOOLEAN,
        True,
        "Whether faster brokers get more of what has no key.",
    )
    partitioner_availability_timeout_ms: int = setting(
        "partitioner.availability.timeout.ms",
        _LONG,
        0,
        "A broker slower than this gets nothing without a key; 0 is off.",
        at_least(0),
    )
    interceptor_classes: Any = setting(
        "interceptor.classes", _OBJECT, (), "Objects that see records and acknowledgements.", aliases=("interceptors",)
    )
    metadata_max_idle_ms: int = setting(
        "metadata.max.idle.ms",
        _LONG,
        300_000,
        "A topic that gets no records for this long is forgotten.",
        at_least(5000),
    )

    @property
    def creates_topics(self) -> bool:
        return True

    def settled(self, given: frozenset[str]) -> Self:
        settled = super().settled(given)
        if settled.enable_idempotence and (reason := settled._why_not_idempotent()):
            if (
                "enable_idempotence" in given
                or settled.max_in_flight_requests_per_connection > _IN_FLIGHT_WITH_IDEMPOTENCE
            ):
                raise ConfigError(f"enable.idempotence needs {reason}: change that, or set enable.idempotence=false")
            logger.info("idempotence is off: it needs %s", reason)
            settled = replace(settled, enable_idempotence=False)
        if settled.transactional_id is not None and not settled.enable_idempotence:
            raise ConfigError("transactional.id needs enable.idempotence: do not turn it off, and leave acks at all")
        least = min(settled.linger_ms + settled.request_timeout_ms, INT32_MAX)
        if settled.delivery_timeout_ms < least:
            if "delivery_timeout_ms" in given:
                raise ConfigError(
                    f"delivery.timeout.ms is {settled.delivery_timeout_ms}, but must be at least linger.ms + "
                    f"request.timeout.ms, which is {least}: raise it, or lower those"
                )
            settled = replace(settled, delivery_timeout_ms=least)
        return settled

    def _why_not_idempotent(self) -> str:
        if self.retries == 0:
            return "retries above 0"
        if self.acks != -1:
            return "acks=all"
        if self.max_in_flight_requests_per_connection > _IN_FLIGHT_WITH_IDEMPOTENCE:
            return f"max.in.flight.requests.per.connection of at most {_IN_FLIGHT_WITH_IDEMPOTENCE}"
        return ""
