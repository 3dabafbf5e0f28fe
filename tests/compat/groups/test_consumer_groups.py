"""Consumer groups beside Apache Kafka's: the same requests in the same order get the same answers, and leave the same
records."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.compat.groups.both import Told, told_by_both
from tests.compat.groups.consumer_scripts import SCRIPTS, Script
from tests.compat.groups.consumer_talk import prepare
from tests.compat.groups.mixed_talk import MixedTalk

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


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, Told]:
    return told_by_both(tmp_path_factory.mktemp("consumer-groups"), SETTINGS, told_by)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_is_answered_alike(both: tuple[Told, Told], script: Script) -> None:
    theirs, mine = both
    assert mine[script.__name__] == theirs[script.__name__]
