"""Damage to the files of a log directory: checkpoints, its identity, the marker of a clean stop, the store.

What cannot be done without is asked for at the start, by name; nothing that is stored is touched meanwhile, and with
the file back all is as it was.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.damage.harm import HARMS
from tests.damage.scene import BESIDE, ELSEWHERE, HURT, Kind, Refused, Scene, dice_for, template
from tests.unit.broker.api.questions import PATIENCE_MS
from tests.wire_client import WireClient

from ottla.broker.broker import StartError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

PARTITIONS = 4
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
STORE = "ottla-store.sqlite3"
SHORTENED = (HURT, 0)
AT_RANDOM = ("flipped bit", "overwritten")


def _with_a_later_start(place: Path, *, killed: bool) -> Scene:
    scene = template(place, PARTITIONS, Kind(), killed=killed)
    scene.start()
    with scene.connect() as client:
        wanted = DeleteRecordsPartition(partition_index=0, offset=4)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=HURT, partitions=[wanted])], timeout_ms=PATIENCE_MS
        )
        ((answer,),) = (topic.partitions for topic in client.ask(request, DeleteRecordsResponse).topics)
        assert answer.error_code == ErrorCode.NONE
    scene.end(killed=killed)
    return scene


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return _with_a_later_start(tmp_path_factory.mktemp("stopped") / "scene", killed=False)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return _with_a_later_start(tmp_path_factory.mktemp("killed") / "scene", killed=True)


@pytest.fixture
def scene(stopped: Scene, tmp_path: Path) -> Iterator[Scene]:
    copied = stopped.copy_to(tmp_path / "scene")
    yield copied
    copied.end()


def refusal_of(scene: Scene) -> str | None:
    """Why the broker does not start, in its own words; None when it does."""
    try:
        scene.start()
    except StartError as error:
        return str(error)
    return None


def check_records(scene: Scene, client: WireClient) -> None:
    for topic, count in ((HURT, PARTITIONS), (BESIDE, 2), (ELSEWHERE, 2)):
        for partition in range(count):
            found, stored = scene.read(client, topic, partition), scene.stored[topic, partition]
            assert not found.unreadable
            if (topic, partition) == SHORTENED:
                assert found.values.items() <= stored.items()
            else:
                assert found.values == stored, (topic, partition)


def check_everything_works(scene: Scene) -> None:
    with scene.connect() as client:
        check_records(scene, client)
        for topic in (HURT, ELSEWHERE):
            # The producer is known: it goes on with its next sequence.
            assert scene.write(client, topic, 1, 14) == 28
        check_records(scene, client)


@pytest.mark.parametrize("harm", [name for name in HARMS if name != "a directory"])
@pytest.mark.parametrize("moment", ["stopped", "killed"])
def test_all_checkpoints_at_once(request: pytest.FixtureRequest, tmp_path: Path, moment: str, harm: str) -> None:
    made: Scene = request.getfixturevalue(moment)
    scene = made.copy_to(tmp_path / "scene")
    for directory in (scene.one, scene.two):
        for name in CHECKPOINTS:
            if (directory / name).exists():
                HARMS[harm](directory / name, dice_for(harm, directory.name, name))
    scene.start()
    try:
        check_everything_works(scene)
    finally:
        scene.end()


@pytest.mark.parametrize("harm", [name for name in HARMS if name != "a directory"])
def test_the_marker_of_a_clean_stop(scene: Scene, harm: str) -> None:
    for directory in (scene.one, scene.two):
        HARMS[harm](directory / ".kafka_cleanshutdown", dice_for(harm))
    scene.start()
    check_everything_works(scene)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("directory", ["one", "two"])
def test_the_identity(scene: Scene, directory: str, harm: str) -> None:
    """A directory whose identity is gone joins the cluster of its store again; one with another's is refused."""
    path = scene.place / directory / "meta.properties"
    before = path.read_bytes()
    HARMS[harm](path, dice_for(harm, directory))
    reason = refusal_of(scene)
    if reason is not None:
        assert str(path) in reason
        if path.is_dir():
            path.rmdir()
        path.write_bytes(before)
        scene.start()
    with scene.connect() as client:
        if path.is_dir():  # The second directory is out of use; the first goes on.
            assert scene.read(client, HURT, 2).values == scene.stored[HURT, 2]
            with pytest.raises(Refused) as refused:
                scene.read(client, HURT, 1)
            assert refused.value.args == (ErrorCode.KAFKA_STORAGE_ERROR,)
            return
    check_everything_works(scene)


@pytest.mark.parametrize(("harm", "seed"), [*((name, 0) for name in HARMS), *itertools.product(AT_RANDOM, range(1, 4))])
def test_the_store(scene: Scene, harm: str, seed: int) -> None:
    """It starts with what it knew, or says what is wrong; nothing that is stored goes away."""
    path = scene.one / STORE
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    records = {log: log.read_bytes() for top in (scene.one, scene.two) for log in top.glob("*/*.log")}
    HARMS[harm](path, dice_for(harm, seed))
    reason = refusal_of(scene)
    scene.end()
    assert reason is None or STORE in reason
    assert {log: log.read_bytes() for log in records} == records
    if path.is_dir():
        path.rmdir()
    for left in scene.one.glob(f"{STORE}*"):
        left.unlink()
    shutil.copy(copy, path)
    scene.start()
    check_everything_works(scene)
