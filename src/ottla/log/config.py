"""The settings of one topic's logs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from ottla.log.config_keys import INT64_MAX, BadConfigValue, ConfigKey, ConfigType, ConfigValue
from ottla.log.topic_configs import TOPIC_CONFIGS
from ottla.protocol.errors import ErrorCode, KafkaError

__all__ = ["TOPIC_CONFIGS", "ConfigKey", "ConfigType", "ConfigValue", "LogConfig"]


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Kafka's topic keys with underscores; what each means is in `TOPIC_CONFIGS`.

    Built from text with `from_properties`, which checks everything; built directly, it takes what it is given.
    """

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = INT64_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    ottla_flush_before_ack: bool = False
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    def roll_after_ms(self, below: Callable[[int], int]) -> int:
        """How old the active segment may get, some jitter less, for which dice are handed in.

        It is never compacted, so a limit on how long records may wait for that closes it earlier.
        """
        roll_ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms
        jitter_ms = min(self.segment_jitter_ms, roll_ms)
        return roll_ms - (below(jitter_ms) if jitter_ms else 0)

    @classmethod
    def from_properties(cls, overrides: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> "LogConfig":
        """From a topic's own settings over the broker's.

        `defaults` may hold broker-wide names (`log.retention.hours`) and topic names; the topic's own settings win,
        then a broker-wide name, the most precise unit first, then the default of the table. An unknown name in
        `overrides` is refused; in `defaults` it is somebody else's setting.
        """
        for name in overrides:
            if name not in TOPIC_CONFIGS:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        found = {key.field_name: _value_of(key, overrides, defaults or {}) for key in TOPIC_CONFIGS.values()}
        small_segment = found.pop("internal_segment_bytes")
        values = found if small_segment is None else {**found, "segment_bytes": small_segment}
        _check_together(values)
        return cls(**values)  # type: ignore[arg-type]  # each value has the type that the table gives its key

    def value_of(self, name: str) -> ConfigValue:
        """The value of a dotted name, for describing it."""
        return getattr(self, TOPIC_CONFIGS[name].field_name)  # type: ignore[no-any-return]  # a field by its name


def _value_of(key: ConfigKey, overrides: Mapping[str, str], defaults: Mapping[str, str]) -> ConfigValue:
    if key.name in overrides:
        return _parse(key, key.name, overrides[key.name], 1)
    for synonym in key.synonyms:
        if synonym.name in defaults:
            return _parse(key, synonym.name, defaults[synonym.name], synonym.multiplier)
    if key.name in defaults:
        return _parse(key, key.name, defaults[key.name], 1)
    return key.default


def _parse(key: ConfigKey, name: str, text: str, multiplier: int) -> ConfigValue:
    try:
        if multiplier != 1:
            amount = key.parse(text)
            assert isinstance(amount, int), "only whole numbers have units"
            # A negative amount means "no limit" in every unit.
            return key.parse(str(amount * multiplier if amount >= 0 else amount))
        return key.parse(text)
    except BadConfigValue as expected:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Invalid value {text} for configuration {name}: expected {expected}"
        ) from None


def _check_together(values: Mapping[str, ConfigValue]) -> None:
    minimum, maximum = values["min_compaction_lag_ms"], values["max_compaction_lag_ms"]
    assert isinstance(minimum, int)
    assert isinstance(maximum, int)
    if minimum > maximum:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"min.compaction.lag.ms ({minimum}) must not be larger than max.compaction.lag.ms ({maximum})",
        )
    if values["remote_storage_enable"]:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "remote.storage.enable must be false: there is no tiered storage")


assert [field.name for field in fields(LogConfig)] == [
    key.field_name for key in TOPIC_CONFIGS.values() if not key.internal
], "the fields of LogConfig are the names of the table"
