"""The command on both brokers, beside kcat on the same topic."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compat.client.conftest import Either
from tests.compat.clients.adapters.kcat import kcat
from tests.unit.cli.command_line import CommandLine

pytestmark = pytest.mark.timeout(120)

FORMAT = r"%t|%p|%o|%k|%K|%s|%S|%T|%h\n"


@pytest.fixture
def ottla(either: Either) -> CommandLine:
    return CommandLine(either.bootstrap)


def test_records_are_written_out_as_kcat_does(ottla: CommandLine, either: Either, topic: str) -> None:
    ottla("topics", "create", topic)
    lines = b"a:tea\nb:\xff\xfe\nc:\nd:x:y\n"
    assert "4 records written" in ottla("produce", topic, "-K", ":", "-H", "h=1", "-H", "i=2", stdin=lines).err
    theirs = kcat(["-b", either.bootstrap, "-C", "-t", topic, "-e", "-q", "-f", FORMAT])
    assert ottla("consume", topic, "-f", FORMAT).out_bytes == theirs
    theirs = kcat(["-b", either.bootstrap, "-C", "-t", topic, "-e", "-q", "-p", "0", "-o", "-2"])
    assert ottla("consume", topic, "--from", "-2").out_bytes == theirs


def test_records_are_read_as_kcat_reads_them(ottla: CommandLine, either: Either, topic: str) -> None:
    """The same input through both, and the same partitions for the same keys."""
    ottla("topics", "create", topic, f"{topic}-kcat", "--partitions", "4")
    lines = b"".join(b"key-%d\t%d\n" % (number, number) for number in range(40))
    ottla("produce", topic, "-K", r"\t", "-z", "zstd", stdin=lines)
    kcat(["-b", either.bootstrap, "-P", "-t", f"{topic}-kcat", "-K", "\t", "-X", "partitioner=murmur2_random"], lines)
    ours, theirs = (
        sorted((line["key"], line["value"], line["partition"]) for line in ottla("consume", name, "--json").lines)
        for name in (topic, f"{topic}-kcat")
    )
    assert ours == theirs
    assert len(ours) == 40


def test_copies_keep_everything(ottla: CommandLine, topic: str, tmp_path: Path) -> None:
    ottla("topics", "create", topic, *(f"{topic}-{kind}" for kind in ("jsonl", "parquet", "topic")), "-p", "2")
    lines = b"".join(
        b'{"key": "k%d", "value": "%d", "headers": {"h": null}, "timestamp": 1700000000000}\n' % (n, n)
        for n in range(20)
    )
    ottla("produce", topic, "--json", stdin=lines)
    ottla("produce", topic, "--key", "gone", "--null", "NULL", "--value", "NULL")
    for kind in ("jsonl", "parquet"):
        file = str(tmp_path / f"records.{kind}")
        assert ottla("cp", topic, file, "--json").lines == [{"from": topic, "to": file, "records": 21}]
        ottla("cp", file, f"{topic}-{kind}", "--same-partitions")
    ottla("cp", topic, f"{topic}-topic")
    original = seen(ottla, topic)
    assert len(original) == 21
    for kind in ("jsonl", "parquet", "topic"):
        assert seen(ottla, f"{topic}-{kind}") == original


def seen(ottla: CommandLine, topic: str) -> list[tuple[object, ...]]:
    """All that must survive a copy, in order."""
    rows = ottla("consume", topic, "--json").lines
    rows.sort(key=lambda row: (row["partition"], row["offset"]))
    return [(row["partition"], row["key"], row["value"], row["headers"], row["timestamp"]) for row in rows]


def test_a_group_reads_on_where_it_stopped(ottla: CommandLine, topic: str) -> None:
    ottla("topics", "create", topic)
    ottla("produce", topic, stdin=b"1\n2\n3\n4\n5\n")
    group = f"group-{topic}"
    assert ottla("consume", topic, "--group", group, "--from", "beginning", "--count", "3").out == "1\n2\n3\n"
    assert [row["lag"] for row in ottla("groups", "lag", group, "--json").lines] == [2]
    assert ottla("consume", topic, "--group", group, "--count", "2").out == "4\n5\n"
    assert ottla("groups", "reset", group, "--to", "beginning", "--apply", "--json").lines[0]["new"] == 0
    assert ottla("consume", topic, "--group", group, "--count", "1").out == "1\n"
