"""Topic settings from text."""

import pytest

from ottla.log.config import TOPIC_CONFIGS, LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError


def refused(overrides: dict[str, str], defaults: dict[str, str] | None = None) -> str:
    with pytest.raises(KafkaError) as caught:
        LogConfig.from_properties(overrides, defaults)
    assert caught.value.code == ErrorCode.INVALID_CONFIG
    return str(caught.value)


def test_nothing_set_gives_the_defaults() -> None:
    assert LogConfig.from_properties({}) == LogConfig()


def test_every_key_explains_itself_and_reads_its_own_default() -> None:
    for key in TOPIC_CONFIGS.values():
        assert len(key.documentation) > 20
        if key.default is not None:
            assert key.parse(key.format(key.default)) == key.default
        if not key.internal:
            assert LogConfig().value_of(key.name) == key.default


def test_the_topic_wins_over_the_broker() -> None:
    config = LogConfig.from_properties({"retention.ms": "5"}, {"log.retention.hours": "1", "retention.ms": "9"})
    assert config.retention_ms == 5


def test_the_most_precise_unit_wins() -> None:
    both = {"log.retention.hours": "2", "log.retention.minutes": "3"}
    assert LogConfig.from_properties({}, both).retention_ms == 180_000
    assert LogConfig.from_properties({}, {**both, "log.retention.ms": "7"}).retention_ms == 7
    assert LogConfig.from_properties({}, {"log.roll.hours": "1"}).segment_ms == 3_600_000


def test_no_limit_means_the_same_in_every_unit() -> None:
    assert LogConfig.from_properties({}, {"log.retention.hours": "-1"}).retention_ms == -1


def test_settings_of_others_among_the_defaults_are_left_alone() -> None:
    assert LogConfig.from_properties({}, {"listeners": "x", "num.partitions": "many"}) == LogConfig()


def test_a_small_segment_for_tests() -> None:
    assert LogConfig.from_properties({"internal.segment.bytes": "100"}).segment_bytes == 100


def test_policies() -> None:
    config = LogConfig.from_properties({"cleanup.policy": "compact, delete"})
    assert (config.compact, config.delete) == (True, True)
    assert LogConfig().delete
    assert not LogConfig().compact


def test_an_error_names_key_value_and_what_is_allowed() -> None:
    message = refused({"segment.bytes": "10"})
    assert "segment.bytes" in message
    assert "10" in message
    assert "at least 1048576" in message
    assert "log.retention.hours" in refused({}, {"log.retention.hours": "soon"})
    assert "one of" in refused({"message.timestamp.type": "Now"})
    assert "true or false" in refused({"ottla.flush.before.ack": "maybe"})


def test_contradictions_and_unknown_names_are_refused() -> None:
    assert "min.compaction.lag.ms" in refused({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
    assert "no tiered storage" in refused({"remote.storage.enable": "true"})
    assert "segment.size" in refused({"segment.size": "5"})
