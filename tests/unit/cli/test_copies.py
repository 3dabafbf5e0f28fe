"""`ottla cp`: where it writes to, what it reads from others, and how it ends in the middle."""

import csv
import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.command_line import CommandLine

from ottla.testing import ErrorCode, TestBroker

FAILED, WRONG = 1, 2


@pytest.fixture
def orders(broker: TestBroker, topic: str) -> str:
    broker.create_topic(topic, partitions=2)
    broker.produce(topic, "tea", partition=1)
    return topic


def values_of(text: str | bytes) -> list[Any]:
    return [json.loads(line)["value"] for line in text.splitlines()]


def read_in_thread(pipe: Path) -> tuple[threading.Thread, list[bytes]]:
    os.mkfifo(pipe)
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reading.start()
    return reading, found


def test_a_named_pipe_is_written_to(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    pipe = tmp_path / "orders.jsonl"
    reading, found = read_in_thread(pipe)
    ottla("cp", orders, str(pipe))
    assert pipe.is_fifo()
    reading.join()
    assert values_of(found[0]) == ["tea"]
    assert list(tmp_path.iterdir()) == [pipe]


def test_parquet_into_a_named_pipe(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    pipe = tmp_path / "orders.parquet"
    reading, found = read_in_thread(pipe)
    ottla("cp", orders, str(pipe))
    reading.join()
    assert parquet.read_table(arrow.BufferReader(found[0])).column("value").to_pylist() == [b"tea"]


def test_the_file_behind_a_link_is_replaced(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    file, link = tmp_path / "file.jsonl", tmp_path / "link.jsonl"
    file.write_text("old")
    link.symlink_to(file)
    ottla("cp", orders, str(link))
    assert link.is_symlink()
    assert values_of(file.read_text()) == ["tea"]
    file.unlink()
    ottla("cp", orders, str(link))
    assert values_of(file.read_text()) == ["tea"]
    assert sorted(tmp_path.iterdir()) == [file, link]


@pytest.mark.parametrize("name", ["orders.jsonl", "orders.parquet"])
def test_a_directory_is_refused(ottla: CommandLine, orders: str, tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()
    assert "it is a directory" in ottla("cp", orders, str(directory), code=WRONG).err
    assert list(tmp_path.iterdir()) == [directory]


def test_a_full_disk_is_told_in_one_line(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    """By a link: whatever is wrong with the command, the device of this machine stays what it is."""
    link = tmp_path / "full.jsonl"
    link.symlink_to("/dev/full")
    done = ottla("cp", orders, str(link), code=FAILED)
    assert "No space left on device" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_wrong_line_far_behind_says_how_many_were_written(
    ottla: CommandLine, broker: TestBroker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    file = tmp_path / "orders.jsonl"
    file.write_text('{"value": "' + "x" * 100_000 + '"}\n' + ' {"value": "y"}\n' * 20_000 + "bad\n")
    done = ottla("cp", str(file), topic, code=FAILED)
    written = len(broker.records(topic))
    assert written > 0
    assert f"line 20002: this is no JSON: Expecting value: line 1 column 1 (char 0) ({written} records were" in done.err


def test_a_refused_record_says_how_many_were_written(ottla: CommandLine, broker: TestBroker, orders: str) -> None:
    broker.faults.error("PRODUCE", ErrorCode.POLICY_VIOLATION)
    done = ottla("cp", "-", orders, "--json", stdin=b'{"value": "a"}\n', code=FAILED)
    told = json.loads(done.err)
    assert told["code"] == "POLICY_VIOLATION"
    assert "(0 records were acknowledged before)" in told["error"]


def test_partitions_that_the_other_topic_does_not_have(
    ottla: CommandLine, broker: TestBroker, orders: str, topic: str
) -> None:
    smaller = f"{topic}-smaller"
    broker.create_topic(smaller)
    done = ottla("cp", orders, smaller, "--same-partitions", "--timeout", "5", code=FAILED)
    assert f"{smaller} has no partition 1: it has 0 to 0" in done.err


class TestParquetOfOthers:
    @pytest.fixture
    def arrow(self) -> Any:
        pytest.importorskip("pyarrow.parquet")
        return pytest.importorskip("pyarrow")

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "others.parquet"

    def write(self, arrow: Any, file: Path, **columns: Any) -> None:
        arrow.parquet.write_table(arrow.table(columns), file)

    def test_times_of_any_kind(
        self, arrow: Any, file: Path, ottla: CommandLine, broker: TestBroker, topic: str
    ) -> None:
        broker.create_topic(topic)
        for column in (
            arrow.array([1_700_000_000_123_456], arrow.timestamp("us")),
            arrow.array([1_700_000_000_123_456_789], arrow.timestamp("ns", tz="Europe/Prague")),
            arrow.array([1_700_000_000_123]),
            arrow.array([19_675], arrow.date32()),
            arrow.array([None]),
        ):
            self.write(arrow, file, value=["tea"], timestamp=column)
            ottla("cp", str(file), topic)
        assert [one.timestamp for one in broker.records(topic)][:4] == [1_700_000_000_123] * 3 + [1_699_920_000_000]

    def test_headers_as_a_map(self, arrow: Any, file: Path, ottla: CommandLine, broker: TestBroker, topic: str) -> None:
        broker.create_topic(topic)
        headers = arrow.array([[("a", "1"), ("b", None)]], arrow.map_(arrow.string(), arrow.string()))
        self.write(arrow, file, value=["tea"], headers=headers, partition=["none"])
        ottla("cp", str(file), topic)
        assert broker.records(topic)[0].headers == (("a", b"1"), ("b", None))

    def test_values_that_are_no_text_are_json(
        self, arrow: Any, file: Path, ottla: CommandLine, broker: TestBroker, topic: str
    ) -> None:
        broker.create_topic(topic)
        for value in ({"item": "čaj", "bytes": b"\xff"}, [1, 2], True, 2.5):
            self.write(arrow, file, value=[value])
            ottla("cp", str(file), topic)
        assert [one.value for one in broker.records(topic)] == [
            '{"item":"čaj","bytes":{"base64":"/w=="}}'.encode(),
            b"[1,2]",
            b"true",
            b"2.5",
        ]

    @pytest.mark.parametrize(
        ("column", "content", "told"),
        [
            ("timestamp", 1.5, "column 'timestamp' of FILE is double: it must be times or whole numbers"),
            ("timestamp", "now", "column 'timestamp' of FILE is string"),
            ("timestamp", -5, "times before 1970"),
            ("headers", "a=b", "column 'headers' of FILE is string: it must be a list of structs with key and value"),
            ("headers", {"a": "b"}, "column 'headers' of FILE is struct<a: string>"),
            ("headers", [{"key": None, "value": "b"}, {"key": "a", "value": "b"}], "a header has no name"),
            ("partition", "0", "column 'partition' of FILE is string: it must be whole numbers"),
        ],
    )
    def test_columns_that_cannot_be_meant(
        self, arrow: Any, file: Path, ottla: CommandLine, orders: str, column: str, content: Any, told: str
    ) -> None:
        self.write(arrow, file, **{"value": ["tea"], column: [content]})
        done = ottla("cp", str(file), orders, "--same-partitions", code=WRONG)
        assert told.replace("FILE", str(file)) in done.err
        assert len(done.err.splitlines()) == 1


def test_csv_is_what_others_read(ottla: CommandLine, broker: TestBroker, topic: str, tmp_path: Path) -> None:
    broker.create_topic(topic)
    awkward = ["tea, green", 'a "b"', "two\nlines", "\r", "", " padded ", "é"]
    for value in awkward:
        broker.produce(topic, value, key="k,1", headers=[("source", "shop")])
    broker.produce(topic, None, key=None)
    broker.produce(topic, b"\xff")
    ottla("cp", topic, str(tmp_path / "orders.csv"))
    text = (tmp_path / "orders.csv").read_bytes().decode()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert [row[:3] for row in rows] == [[topic, "0", str(offset)] for offset in range(len(awkward) + 2)]
    assert all(int(row[3]) > 1_700_000_000_000 for row in rows)
    assert [row[5] for row in rows] == [*awkward, "", '{"base64": "/w=="}']
    assert [(row[4], row[6]) for row in rows[:7]] == [("k,1", '[["source", "shop"]]')] * 7
    lines = text.split("\n")
    assert [line for line in lines if line.endswith(",,,")] == [lines[-3]]


def test_csv_of_no_records_has_its_head(ottla: CommandLine, broker: TestBroker, topic: str, tmp_path: Path) -> None:
    broker.create_topic(topic)
    ottla("cp", topic, str(tmp_path / "orders.csv"))
    assert (tmp_path / "orders.csv").read_text() == "topic,partition,offset,timestamp,key,value,headers\n"


def test_csv_is_not_read(ottla: CommandLine, orders: str) -> None:
    done = ottla("cp", "orders.csv", orders, code=WRONG)
    assert done.err == "ottla: orders.csv: CSV is only written; copy from .jsonl, .ndjson, .json or .parquet\n"
