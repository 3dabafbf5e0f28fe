"""The same mistake ends every command with the same exit code, and with one line that says what it is."""

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.cli.command_line import CommandLine

from ottla.testing import TestBroker

FAILED, WRONG = 1, 2

MISTAKES: dict[tuple[str, int], tuple[str, ...]] = {
    ("unknown topic", FAILED): (
        "topics describe nosuch",
        "topics delete nosuch --yes",
        "topics alter nosuch --partitions 3",
        "topics alter nosuch --set retention.ms=5",
        "topics alter nosuch --unset retention.ms",
        "configs describe topic:nosuch",
        "configs alter topic:nosuch --set retention.ms=5",
        "consume nosuch",
        "consume nosuch --last 3",
        "consume nosuch --follow",
        "consume nosuch --group billing",
        "produce nosuch --value tea",
        "cp nosuch -",
        "cp orders nosuch",
        "cp orders.jsonl nosuch",
        "groups reset billing --to end --topic nosuch",
        "capture sqlite:bank.db --topic nosuch --table accounts=id",
        "lake load lake nosuch",
    ),
    ("unknown partition", FAILED): (
        "consume orders --partitions 9",
        "produce orders --value tea --partition 9",
        "cp orders - --partitions 9",
        "groups reset billing --to end --topic orders:9",
    ),
    ("unknown group", FAILED): (
        "groups describe nosuch",
        "groups lag nosuch",
        "groups reset nosuch --to end",
        "groups reset nosuch --by 1 --topic orders",
        "groups delete nosuch --yes",
    ),
    ("unknown broker", FAILED): (
        "configs describe broker:99",
        "configs alter broker:99 --set log.cleaner.backoff.ms=5",
    ),
    ("setting that does not exist", FAILED): (
        "topics create other --set retentionms=5",
        "topics alter orders --set retentionms=5",
        "topics alter orders --unset retentionms",
        "configs alter topic:orders --set retentionms=5",
        "configs alter topic:orders --unset retentionms",
        "configs describe topic:orders retentionms",
    ),
    ("setting with a wrong value", FAILED): (
        "topics create other --set retention.ms=soon",
        "topics alter orders --set retention.ms=soon",
        "configs alter topic:orders --set retention.ms=soon",
    ),
    ("setting without a value", WRONG): (
        "topics create other --set retention.ms",
        "topics alter orders --set retention.ms",
        "configs alter topic:orders --set retention.ms",
        "topics list -X client.id",
    ),
    ("setting of clients that does not exist", WRONG): (
        "topics list -X no.such=1",
        "produce orders --value tea -X no.such=1",
        "consume orders -X no.such=1",
        "consume orders --group billing -X no.such=1",
        "cp orders - -X no.such=1",
        "capture sqlite:bank.db --topic orders --table accounts=id -X no.such=1",
        "lake load lake orders -X no.such=1",
    ),
    ("no place", WRONG): (
        "consume orders --from soon",
        "consume orders --until soon",
        "consume orders --group billing --from soon",
        "cp orders - --from soon",
        "groups reset billing --to soon",
    ),
    ("no partitions", WRONG): (
        "consume orders --partitions x",
        "cp orders - --partitions x",
        "groups reset billing --to end --topic orders:x",
    ),
    ("no resource", WRONG): (
        "configs describe shelf:x",
        "configs describe broker:x",
        "configs alter shelf:x --set a=b",
        "capture shelf:x --topic orders --table accounts=id",
    ),
    ("file that is not there", WRONG): (
        "produce orders --file nosuch.txt",
        "cp nosuch.jsonl orders",
        "cp orders nosuch/orders.jsonl",
        "topics list --config nosuch.properties",
        "lake show nosuch",
        "lake compact nosuch",
    ),
    ("no address of a broker", WRONG): (
        "topics list -b nonsense",
        "produce orders --value tea -b nonsense",
        "consume orders -b nonsense",
        "cp orders - -b nonsense",
        "cp orders orders --to-bootstrap-server nonsense",
        "capture sqlite:bank.db --topic orders --table accounts=id -b nonsense",
    ),
    ("nobody confirms", WRONG): ("topics delete orders", "groups delete billing"),
}
CASES = [(*mistake, command) for mistake, commands in MISTAKES.items() for command in commands]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        running.create_topic("orders")
        yield running


@pytest.mark.parametrize(("mistake", "code", "command"), CASES, ids=[command for _, _, command in CASES])
def test_the_same_mistake_has_the_same_code(
    ottla: CommandLine, mistake: str, code: int, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.jsonl").write_text('{"value": "tea"}\n')
    with closing(sqlite3.connect("bank.db")) as bank:
        bank.execute("create table accounts (id integer primary key)")
    done = ottla(*shlex.split(command), code=None)
    assert done.code == code, (mistake, done)
    (line,) = done.err.splitlines()
    assert line.startswith("ottla: ")
    assert done.out == ""
