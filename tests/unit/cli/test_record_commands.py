"""`ottla produce`, `consume` and `cp` as a user meets them, most of all where something is wrong."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.command_line import CommandLine

from ottla.client.producer.producer import AsyncProducer
from ottla.client.sync.producer import Producer
from ottla.testing import ErrorCode, TestBroker

FAILED, WRONG = 1, 2


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture(autouse=True)
def no_faults_left(broker: TestBroker) -> Iterator[None]:
    yield
    broker.faults.clear()


@pytest.fixture
def orders(broker: TestBroker, topic: str) -> str:
    """A topic with 0 to 4 in partition 0 and a to c in partition 1, each a second later than the one before."""
    broker.create_topic(topic, partitions=2)
    times = iter(range(1_700_000_000_000, 1_700_000_008_000, 1000))
    for value in "01234":
        broker.produce(topic, value, key=f"key-{value}", partition=0, timestamp=next(times))
    for value in "abc":
        broker.produce(topic, value, partition=1, timestamp=next(times))
    return topic


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--partitions", "0"], "0 1 2 3 4"),
        (["--partitions", "1", "--count", "2"], "a b"),
        (["--from", "3", "--partitions", "0"], "3 4"),
        (["--from", "-1", "--partitions", "0"], "4"),
        (["--from", "@1700000003000", "--until", "@1700000006000"], "3 4 a"),
        (["--until", "2", "--partitions", "0"], "0 1"),
        (["--from", "end"], ""),
        (["--from", "beginning", "--until", "beginning"], ""),
        (["--last", "4"], "4 a b c"),
        (["--last", "100"], "0 1 2 3 4 a b c"),
        (["--last", "99999999999999999999"], "0 1 2 3 4 a b c"),
        (["--last", "5", "--partitions", "0", "--count", "2"], "0 1"),
        (["--last", "1", "--follow", "--idle", "0.5"], "c"),
        (["--follow", "--from", "4", "--partitions", "0", "--count", "1"], "4"),
    ],
)
def test_which_records_are_read(ottla: CommandLine, orders: str, arguments: list[str], expected: str) -> None:
    assert sorted(ottla("consume", orders, *arguments).out.split()) == expected.split()


def test_how_they_are_written(ottla: CommandLine, orders: str) -> None:
    one = ("consume", orders, "--partitions", "1", "--count", "1")
    assert ottla(*one, "-f", r"%k|%s\t%T\n", "-Z", "NULL").out == "NULL|a\t1700000005000\n"
    (line,) = ottla(*one, "--json").lines
    assert (line["key"], line["value"], line["partition"], line["offset"]) == (None, "a", 1, 0)
    (line,) = ottla("consume", orders, "--partitions", "0", "--count", "1", "--json", "--value-json").lines
    assert (line["key"], line["value"]) == ("key-0", 0)


@pytest.mark.parametrize(
    ("arguments", "partition"),
    [
        (["consume", "TOPIC", "--partitions", "7"], 7),
        (["produce", "TOPIC", "-v", "a", "-p", "99"], 99),
        (["produce", "TOPIC", "-v", '{"value": 1, "partition": 2}', "--json"], 2),
    ],
)
def test_a_partition_that_is_not_there(ottla: CommandLine, orders: str, arguments: list[str], partition: int) -> None:
    done = ottla(*(orders if one == "TOPIC" else one for one in arguments), code=FAILED)
    assert done.err == f"ottla: {orders} has no partition {partition}: it has 0 to 1\n"
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["consume", "TOPIC", "--json", "-f", "%s"], "either --json or --format"),
        (["consume", "TOPIC", "-f", "%q"], "is no token of a format"),
        (["consume", "TOPIC", "--last", "3", "--from", "end"], "either --last, or --from and --until"),
        (["consume", "TOPIC", "--from", "soon"], "is no place in a topic"),
        (["consume", "TOPIC", "--from", "0001-01-01"], "is no place in a topic"),
        (["consume", "TOPIC", "--group", "g", "--until", "end"], "do not go with --group"),
        (["consume", "TOPIC", "--group", "g", "--from", "5"], "--from is beginning or end with --group"),
        (["produce", "TOPIC", "-v", "a", "-l", "file"], "either --value or --file"),
        (["produce", "TOPIC", "-l", "missing.txt"], "missing.txt cannot be read"),
        (["produce", "TOPIC", "-v", "a", "-K", ""], "the key separator is empty"),
        (["produce", "TOPIC", "-v", "a", "-D", ""], "the delimiter between records is empty"),
        (["produce", "TOPIC", "-v", "a", "-H", "=b"], "it must look like name=value"),
        (["produce", "TOPIC", "-v", "a", "-K", ":"], "line 1: there is no key separator"),
        (["produce", "TOPIC", "-v", "{}", "--json"], "line 1: the field 'value' is missing"),
        (["produce", "TOPIC", "-v", "a", "-z", "zip"], "compression.type"),
        (["produce", "TOPIC", "-v", "a", "--acks", "2"], "acks"),
        (["cp", "a.jsonl", "b.jsonl"], "a topic on at least one side"),
        (["cp", "TOPIC", "TOPIC"], "cannot be copied into itself"),
        (["cp", "a.jsonl", "TOPIC", "--from", "end"], "are about topics"),
        (["cp", "missing.jsonl", "TOPIC"], "missing.jsonl cannot be read"),
        (["cp", "missing.parquet", "TOPIC"], "missing.parquet cannot be read"),
        (["cp", "TOPIC", "no/such/place.jsonl"], "cannot be written"),
        (["cp", "TOPIC", "no/such/place.parquet"], "cannot be written"),
    ],
)
def test_wrong_usage_is_told_in_one_line(
    ottla: CommandLine,
    orders: str,
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ottla(*(word.replace("TOPIC", orders) for word in arguments), code=WRONG)
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["consume", "none"], ["produce", "none", "-v", "a"], ["cp", "none", "-"]])
def test_a_topic_that_does_not_exist(ottla: CommandLine, broker: TestBroker, command: list[str]) -> None:
    done = ottla(*command, code=FAILED)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.err
    assert "none" not in broker.topics()


def test_a_record_that_is_refused_ends_it_and_says_how_many_were_written(
    ottla: CommandLine, broker: TestBroker, orders: str
) -> None:
    broker.faults.error("PRODUCE", ErrorCode.POLICY_VIOLATION)
    done = ottla("produce", orders, "-v", "a", "-v", "b", code=FAILED)
    assert "POLICY_VIOLATION" in done.err
    assert "(0 records were acknowledged before)" in done.err


def test_a_record_that_is_too_large(ottla: CommandLine, orders: str) -> None:
    done = ottla("produce", orders, stdin=b"x" * 2_000_000, code=FAILED)
    assert "max.request.size" in done.err


def test_what_is_produced(ottla: CommandLine, broker: TestBroker, topic: str, tmp_path: Path) -> None:
    broker.create_topic(topic)
    ottla("produce", topic, "-Z", "NULL", "-K", "|", stdin=b"a|NULL\nb|\n|c")
    file = tmp_path / "input"
    file.write_bytes(b"x\0y")
    reports = ottla("produce", topic, "-l", str(file), "-D", r"\0", "-k", "k", "-H", "h", "--report").lines
    assert [(one["partition"], one["offset"]) for one in reports] == [(0, 3), (0, 4)]
    line = {"value": {"base64": "/w=="}, "key": 7, "timestamp": 5, "headers": [["a", "b"]]}
    ottla("produce", topic, "--json", "-H", "c=d", stdin=json.dumps(line).encode())
    stored = [(one.key, one.value, one.headers) for one in broker.records(topic)]
    assert stored == [
        (b"a", None, ()),
        (b"b", b"", ()),
        (b"", b"c", ()),
        (b"k", b"x", (("h", None),)),
        (b"k", b"y", (("h", None),)),
        (b"7", b"\xff", (("a", b"b"), ("c", b"d"))),
    ]
    assert broker.records(topic)[-1].timestamp == 5


def write_transactions(
    broker: TestBroker, topic: str, *transactions: tuple[bytes, bool], partition: int = 0, timestamp: int | None = None
) -> None:
    """Each byte is a record; those of a transaction are committed or aborted together."""

    async def write() -> None:
        producer: AsyncProducer[bytes, bytes] = AsyncProducer(broker.bootstrap_servers, transactional_id=topic)
        async with producer:
            await producer.init_transactions()
            for values, is_committed in transactions:
                producer.begin_transaction()
                for value in values:
                    producer.send(topic, bytes([value]), partition=partition, timestamp=timestamp)
                await producer.flush()
                await (producer.commit_transaction() if is_committed else producer.abort_transaction())

    asyncio.run(write())


def test_the_last_records_are_found_behind_offsets_without_any(
    ottla: CommandLine, broker: TestBroker, topic: str
) -> None:
    """An aborted transaction and the marks of transactions take offsets that nobody can read."""
    broker.create_topic(topic)
    write_transactions(broker, topic, (b"12", True), (b"xyxyxyxyxy", False), (b"3", True))
    committed = ("-X", "isolation.level=read_committed")
    assert ottla("consume", topic, "--last", "2", *committed).out.split() == ["2", "3"]
    assert ottla("consume", topic, *committed).out.split() == ["1", "2", "3"]
    assert ottla("consume", topic, "--last", "3").out.split() == ["x", "y", "3"]
    assert len(ottla("consume", topic).out.split()) == 13
    assert len(ottla("cp", topic, "-").lines) == 3


def test_a_copy_that_fails_leaves_the_old_file(
    ottla: CommandLine, broker: TestBroker, orders: str, tmp_path: Path
) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_text("old")
    broker.faults.error("FETCH", ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=None)
    done = ottla("cp", orders, str(file), code=FAILED)
    assert "TOPIC_AUTHORIZATION_FAILED" in done.err or "authoriz" in done.err.lower()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_part_of_a_topic_as_parquet(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "orders.parquet"
    ottla("cp", orders, str(file), "--from", "1", "--until", "3")
    table = parquet.read_table(file)
    assert table.column_names == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    rows = sorted((row["partition"], row["offset"], row["value"]) for row in table.to_pylist())
    assert rows == [(0, 1, b"1"), (0, 2, b"2"), (1, 1, b"b"), (1, 2, b"c")]


def test_a_file_of_others_needs_a_value(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "others.parquet"
    parquet.write_table(arrow.table({"name": ["tea"]}), file)
    assert "has no column 'value'" in ottla("cp", str(file), orders, code=WRONG).err
    parquet.write_table(arrow.table({"value": ["tea"], "key": [7]}), file)
    ottla("cp", str(file), orders)
    assert ottla("consume", orders, "--last", "1", "-f", "%k %s").out == "7 tea"


def test_a_line_that_is_wrong_in_the_middle_of_a_file(ottla: CommandLine, orders: str, tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_text('{"value": "fine"}\n\nnot json\n')
    assert "line 3: this is no JSON" in ottla("cp", str(file), orders, code=WRONG).err


def test_the_last_records_are_found_where_other_partitions_have_enough(
    ottla: CommandLine, broker: TestBroker, topic: str
) -> None:
    broker.create_topic(topic, partitions=2)
    for value in "old":
        broker.produce(topic, value, partition=0, timestamp=1_700_000_000_000)
    write_transactions(broker, topic, (b"new", True), (b"x" * 20, False), partition=1, timestamp=1_700_000_001_000)
    committed = ("-X", "isolation_level=read_committed")
    assert ottla("consume", topic, "--last", "3", *committed).out.split() == ["n", "e", "w"]
    assert ottla("consume", topic, "--last", "4", *committed).out.split() == ["d", "n", "e", "w"]


def test_settings_may_be_written_with_underscores(ottla: CommandLine, broker: TestBroker, topic: str) -> None:
    """The command looks for the end of a topic with them, too: before or behind what a transaction has begun."""
    broker.create_topic(topic)
    broker.produce(topic, "a")
    with Producer(broker.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"b")
        producer.flush()
        assert [line["value"] for line in ottla("cp", topic, "-").lines] == ["a"]
        copied = ottla("cp", topic, "-", "-X", "isolation_level=read_uncommitted").lines
        assert [line["value"] for line in copied] == ["a", "b"]
        assert ottla("consume", topic, "-X", "isolation_level=read_committed").out == "a\n"
        producer.abort_transaction()


def test_no_patience_does_not_cut_off_what_is_there(
    ottla: CommandLine, broker: TestBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More records than come at once. A machine that is busy gets its time to bring them."""
    monkeypatch.setattr("ottla.cli.reading.POLL_SECONDS", 20.0)
    broker.create_topic(topic)
    ottla("produce", topic, stdin=b"x\n" * 25_000)
    assert ottla("consume", topic, "--idle", "0").out == "x\n" * 25_000
    group = ("--group", f"group-{topic}", "--from", "beginning")
    assert ottla("consume", topic, *group, "--count", "25000", "--idle", "0").out == "x\n" * 25_000
    assert "--idle" in ottla("consume", topic, "--idle", "-1", code=WRONG).err


def test_a_wrong_line_behind_others_says_how_many_were_written(
    ottla: CommandLine, broker: TestBroker, topic: str
) -> None:
    broker.create_topic(topic)
    done = ottla("produce", topic, "--json", stdin=b'{"value": "good"}\n\nbad\n{"value": "late"}\n', code=FAILED)
    assert "line 3: this is no JSON" in done.err
    assert "(1 records were written before)" in done.err
    assert [one.value for one in broker.records(topic)] == [b"good"]
    done = ottla("produce", topic, "--json", stdin=b'{"value": 1}\n{"value": 2, "partition": 9}\n', code=FAILED)
    assert f"{topic} has no partition 9: it has 0 to 0 (1 records were written before)" in done.err


def test_a_null_key_wins_over_the_option(ottla: CommandLine, broker: TestBroker, topic: str) -> None:
    broker.create_topic(topic)
    ottla("produce", topic, "--json", "-k", "k", stdin=b'{"value": 1, "key": null}\n{"value": 2}\n')
    assert [one.key for one in broker.records(topic)] == [None, b"k"]
