"""The table of topic keys against Kafka's own."""

from __future__ import annotations

import pytest
from tests.compat.log.oracle import KafkaLog

from ottla.log.config import TOPIC_CONFIGS, LogConfig
from ottla.protocol.errors import KafkaError


def test_names_types_defaults_and_synonyms_are_kafkas(kafka_log: KafkaLog) -> None:
    expected = {}
    for line in kafka_log.good("configs"):
        name, kind, default, *synonyms = line.split("|")
        expected[name] = (kind, default, synonyms)
    found = {
        key.name: (
            key.type.value,
            key.format(key.default),
            [f"{synonym.name}*{synonym.multiplier}" for synonym in key.synonyms],
        )
        for key in TOPIC_CONFIGS.values()
        if not key.name.startswith("ottla.")
    }
    assert found == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", "Delete"),
        ("cleanup.policy", "compact,remove"),
        ("compression.type", "none"),
        ("compression.type", "uncompressed"),
        ("compression.type", "ZSTD"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "-1"),
        ("compression.gzip.level", "10"),
        ("compression.lz4.level", "17"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "-131072"),
        ("compression.zstd.level", "-131073"),
        ("segment.bytes", "1048575"),
        ("segment.bytes", "1048576"),
        ("segment.bytes", "2147483648"),
        ("internal.segment.bytes", "100"),
        ("retention.bytes", "-5"),
        ("retention.ms", "-1"),
        ("retention.ms", "-2"),
        ("retention.ms", " 5 "),
        ("retention.ms", "5.0"),
        ("retention.ms", "9223372036854775808"),
        ("preallocate", "yes"),
        ("preallocate", "TRUE"),
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "x"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "1"),
        ("message.timestamp.type", "createtime"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("leader.replication.throttled.replicas", "1:2,x"),
        ("flush.messages", "0"),
        ("flush.ms", "0"),
        ("segment.ms", "0"),
        ("max.compaction.lag.ms", "0"),
        ("bogus", "1"),
    ],
)
def test_the_same_values_are_accepted(kafka_log: KafkaLog, name: str, value: str) -> None:
    expected = kafka_log.ask("validate", name, value)
    try:
        LogConfig.from_properties({name: value})
    except KafkaError:
        assert expected.error is not None
    else:
        assert expected.error is None, expected
