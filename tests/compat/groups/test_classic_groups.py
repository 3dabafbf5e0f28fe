"""Classic groups beside Apache Kafka's: the same requests in the same order get the same answers, and leave the same
records."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from tests.compat.groups.both import Told, told_by_both
from tests.compat.groups.scripts import SCRIPTS
from tests.compat.groups.talk import Talk

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "1500",
    "group.min.session.timeout.ms": "500",
    "group.max.size": "3",
}


def told_by(port: int) -> Told:
    """What a broker answers to each script and what it keeps of the group, all scripts at the same time."""
    with contextlib.closing(Talk(port, "any")) as talk:
        talk.find()
    with ThreadPoolExecutor(len(SCRIPTS)) as pool:
        return dict(zip(SCRIPTS, pool.map(partial(_told, port), SCRIPTS), strict=True))


def _told(port: int, name: str) -> list[Any]:
    with contextlib.closing(Talk(port, name)) as talk:
        SCRIPTS[name](talk)
        talk.write_down_records()
        return talk.said()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, Told]:
    return told_by_both(tmp_path_factory.mktemp("groups"), SETTINGS, told_by)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_answered_alike(both: tuple[Told, Told], name: str) -> None:
    theirs, mine = both
    assert mine[name] == theirs[name]
