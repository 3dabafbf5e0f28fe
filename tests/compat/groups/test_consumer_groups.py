"""Consumer groups beside Apache Kafka's: the same requests in the same order get the same answers, and leave the same
records."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.compat.groups.consumer_scripts import SCRIPTS, Script
from tests.compat.groups.consumer_talk import prepare
from tests.compat.groups.mixed_talk import MixedTalk
from tests.peers.kafka import KafkaBroker
from tests.peers.ottla import OttlaBroker
from tests.peers.paths import PeerMissing

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.size": "3",
    "group.initial.rebalance.delay.ms": "100",
}

Told = dict[str, list[Any]]


def told_by(port: int) -> Told:
    """What a broker answers to each script and what it keeps of the group, all scripts at the same time."""
    prepare(port)
    with ThreadPoolExecutor(len(SCRIPTS)) as pool:
        return dict(pool.map(lambda script: (script.__name__, _told(port, script)), SCRIPTS))


def _told(port: int, script: Script) -> list[Any]:
    talk = MixedTalk(port, script.__name__)
    with talk.client:
        script(talk)
        talk.write_down_records()
    return talk.said


def _ottla_told(directory: Path) -> Told:
    with OttlaBroker(directory, properties=SETTINGS) as broker:
        return told_by(broker.port or 0)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Told, Told]]:
    directory = tmp_path_factory.mktemp("consumer-groups")
    try:
        kafka = KafkaBroker(directory / "kafka", heap="512m", properties=SETTINGS, short_lived=True)
    except PeerMissing as error:
        pytest.skip(str(error))
    with ThreadPoolExecutor(1) as pool:
        mine = pool.submit(_ottla_told, directory / "ottla")
        with kafka:
            theirs = told_by(kafka.port or 0)
        yield theirs, mine.result()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_is_answered_alike(both: tuple[Told, Told], script: Script) -> None:
    theirs, mine = both
    assert mine[script.__name__] == theirs[script.__name__]
