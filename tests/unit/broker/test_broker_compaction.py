"""A compacted topic on a running broker: old values go while clients write and read."""

from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import batch, create_topic, fetch, produce, values
from tests.wire_client import WireClient

from ottla.broker.config import BrokerConfig, ConfigError
from ottla.log.cleaner import CleanerSettings
from ottla.protocol.errors import ErrorCode
from ottla.records import read_records

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.index.bytes": "48",
    "index.interval.bytes": "0",
}
MOST_ROUNDS = 5000


def write_until_compacted(client: WireClient, topic: str) -> int:
    """How many records were written by then."""
    for number in range(MOST_ROUNDS):
        assert produce(client, topic, batch(b"%d" % number)).error_code == ErrorCode.NONE
        answer = fetch(client, topic, 0)
        assert answer.error_code == ErrorCode.NONE
        if read_records(bytes(answer.records or b""))[0].offset > 0:
            return number + 1
    raise AssertionError(f"nothing was compacted while {MOST_ROUNDS} records were written")


def test_old_values_go_and_the_latest_stays_over_a_restart(tmp_path: Path, topic: str) -> None:
    quick = {"log.cleaner.backoff.ms": "1"}
    with BrokerThread(tmp_path, quick) as running, WireClient(running.port) as client:
        create_topic(client, topic, configs=COMPACTED)
        count = write_until_compacted(client, topic)
        last = fetch(client, topic, count - 1)
        assert values(last) == [b"%d" % (count - 1)]
        assert last.high_watermark == count
    assert f"{topic} 0 " in (tmp_path / "cleaner-offset-checkpoint").read_text()
    with BrokerThread(tmp_path, quick) as running, WireClient(running.port) as client:
        answer = fetch(client, topic, count - 1)
        assert values(answer) == [b"%d" % (count - 1)]
        assert answer.high_watermark == count
        assert read_records(bytes(fetch(client, topic, 0).records or b""))[0].offset > 0
        assert produce(client, topic, batch(b"more")).base_offset == count


def test_the_cleaner_is_told_by_kafkas_names() -> None:
    given = {
        "log.cleaner.backoff.ms": "7",
        "log.cleaner.dedupe.buffer.size": "2000000",
        "log.cleaner.io.buffer.load.factor": "0.5",
    }
    assert BrokerConfig.from_properties(given).cleaner == CleanerSettings(7, 2_000_000, 0.5)
    assert BrokerConfig.from_properties({}).cleaner == CleanerSettings()
    assert BrokerConfig.from_properties({"log.cleaner.enable": "false"}).cleaner is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.cleaner.io.buffer.load.factor", "1.5"),
        ("log.cleaner.io.buffer.load.factor", "0"),
        ("log.cleaner.dedupe.buffer.size", "1000"),
        ("log.cleaner.backoff.ms", "-1"),
        ("log.cleaner.enable", "perhaps"),
    ],
)
def test_impossible_settings_are_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig.from_properties({name: value})
