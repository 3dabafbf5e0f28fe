"""`ottla pipeline` as far as it goes without Spark; what needs Spark is in tests/pipelines."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.cli.connecting import WrongUsage
from ottla.cli.main import app
from ottla.cli.pipeline import seconds_of
from ottla.pipelines import submit
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.delays import offsets_of
from ottla.pipelines.frame.order import Order
from ottla.pipelines.frame.place import absolute
from ottla.pipelines.frame.progress import PROGRESS, Progress
from ottla.pipelines.frame.telling import PipelineError
from ottla.pipelines.frame.topics import create_topics
from ottla.testing import TestBroker


def test_the_list_names_them_all() -> None:
    done = CliRunner().invoke(app, ["pipeline", "list", "--json"])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["name"] for row in rows] == catalogue.names()
    assert all(row["title"] and row["inputs"] for row in rows)


def test_no_spark_is_loaded_before_a_pipeline_runs() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from ottla.cli.main import app; "
        "assert 'ottla.pipelines' not in sys.modules; "
        "assert CliRunner().invoke(app, ['pipeline', 'list']).exit_code == 0; "
        "assert not {'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_where_spark_is_missing_it_says_how_to_get_it() -> None:
    code = (
        "import sys, importlib.util as util; find = util.find_spec; "
        "util.find_spec = lambda name, *rest: None if name == 'pyspark' else find(name, *rest); "
        "from ottla.cli.main import app; app(['pipeline', 'run', 'campaign'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "ottla[pipelines]"' in done.stderr


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    done = CliRunner().invoke(app, ["pipeline", "run", "campain"])
    assert done.exit_code == 2
    assert "there is no pipeline 'campain'" in done.stderr
    assert "campaign" in done.stderr


def test_status_shows_what_was_published_last() -> None:
    with TestBroker() as broker:
        command = ["pipeline", "status", "--json", "--bootstrap", broker.bootstrap_servers]
        assert CliRunner().invoke(app, command).stdout == ""
        create_topics([PROGRESS], {"bootstrap.servers": broker.bootstrap_servers})
        for batch in (1, 2):
            one = Progress(
                "campaign", "comparisons", "running", batch=batch, rows_per_second=12.5, lag=7, at_ms=_now_ms()
            )
            broker.produce(PROGRESS.name, json.dumps(one.row()), key=one.key)
        done = CliRunner().invoke(app, command)
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["pipeline"], row["state"], row["batch"]) == ("campaign", "running", 2)
    assert (row["rows_per_second"], row["lag"]) == (12.5, 7)


def test_status_tells_what_is_silent_and_since_when() -> None:
    """A run that was killed has not said so; one that ended has."""
    hour_ago = _now_ms() - 3 * 3_600_000
    told = [
        Progress("campaign", "comparisons", "running", at_ms=hour_ago, dropped=4),
        Progress("campaign", "rejects", "ended", at_ms=hour_ago, dead_letters=2, late=3),
    ]
    with TestBroker() as broker:
        create_topics([PROGRESS], {"bootstrap.servers": broker.bootstrap_servers})
        for one in told:
            broker.produce(PROGRESS.name, json.dumps(one.row()), key=one.key)
        command = ["pipeline", "status", "--bootstrap", broker.bootstrap_servers]
        as_table = CliRunner().invoke(app, command, env={"COLUMNS": "200"}).stdout.splitlines()
        as_json = [json.loads(line) for line in CliRunner().invoke(app, [*command, "--json"]).stdout.splitlines()]
    assert [(row["state"], row["at_ms"]) for row in as_json] == [("silent", hour_ago), ("ended", hour_ago)]
    assert (as_json[0]["dropped"], as_json[1]["dead_letters"], as_json[1]["late"]) == (4, 2, 3)
    assert all(words in as_table[1] for words in ("silent", "4 dropped", "3 h ago"))
    assert all(words in as_table[2] for words in ("ended", "2 malformed, 3 late", "3 h ago"))


def test_status_says_how_old_the_lag_is_and_reads_what_older_runs_have_published() -> None:
    told = [
        Progress("campaign", "a-comparisons", "running", at_ms=_now_ms(), lag=40, behind_ms=12_345, delay_ms=2_345),
        Progress("campaign", "b-comparisons", "running", at_ms=_now_ms(), lag=3),
    ]
    rows = [one.row() for one in told]
    for name in ("behind_ms", "delay_ms"):
        del rows[1][name]
    with TestBroker() as broker:
        create_topics([PROGRESS], {"bootstrap.servers": broker.bootstrap_servers})
        for one, row in zip(told, rows, strict=True):
            broker.produce(PROGRESS.name, json.dumps(row), key=one.key)
        command = ["pipeline", "status", "--bootstrap", broker.bootstrap_servers]
        as_table = CliRunner().invoke(app, command, env={"COLUMNS": "200"}).stdout.splitlines()
        as_json = [json.loads(line) for line in CliRunner().invoke(app, [*command, "--json"]).stdout.splitlines()]
    assert [(row["behind_ms"], row["delay_ms"]) for row in as_json] == [(12_345, 2_345), (None, None)]
    assert as_table[1].split()[6:11] == ["40", "12", "s", "2.3", "s"]
    assert as_table[2].split()[6:9] == ["3", "-", "-"]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_where_java_is_missing_it_says_how_to_get_it(tmp_path: Path) -> None:
    with TestBroker() as broker:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "pipeline", "run", "campaign", "--bootstrap", broker.bootstrap_servers],
            env={**os.environ, "JAVA_HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert f"JAVA_HOME is {tmp_path}, which has no bin/java: install it" in done.stderr
    assert "Traceback" not in done.stderr


def test_addresses_of_stores_stay_and_paths_are_those_of_this_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("hdfs://nn/x", "s3a://bucket/x", "file:/x", "/x"):
        assert absolute(address) == address
    assert absolute("here/x") == str(tmp_path / "here" / "x")


@pytest.mark.parametrize("data", ["hdfs://nn/x", "here"])
def test_all_ways_to_run_take_the_same_place(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    orders: list[Order] = []

    def take(order: Order, *_: object) -> None:
        orders.append(order)
        raise PipelineError("taken")

    monkeypatch.setattr("ottla.cli.pipeline_run.fed", take)
    monkeypatch.setattr("ottla.pipelines.submit.fed", take)
    assert CliRunner().invoke(app, ["pipeline", "run", "campaign", "--data", data]).exit_code == 1
    assert submit.main(["campaign", "--data", data]) == 1
    assert CliRunner().invoke(app, ["pipeline", "run", "campaign", "--most-per-batch", "5000"]).exit_code == 1
    by_command, by_submit, limited = (order.place for order in orders)
    assert by_command.data == by_submit.data == absolute(data)
    assert (by_command.most_per_batch, by_submit.most_per_batch, limited.most_per_batch) == (None, None, 5000)
    assert not (tmp_path / "hdfs:").exists()


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """What commands would run, each of which ends with an error instead."""
    found: list[Order] = []

    def take(order: Order, *_: object) -> None:
        found.append(order)
        raise PipelineError("taken")

    for module in ("ottla.cli.pipeline_run", "ottla.cli.pipeline_demo", "ottla.pipelines.submit"):
        monkeypatch.setattr(f"{module}.fed", take)
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize("begin", ["published", "anew", None])
def test_all_ways_to_run_begin_where_they_are_told(begin: str | None, orders: list[Order]) -> None:
    option = [] if begin is None else ["--begin", begin]
    assert CliRunner().invoke(app, ["pipeline", "run", "campaign", *option]).exit_code == 1
    assert CliRunner().invoke(app, ["pipeline", "demo", "--port", "0", "--only", "campaign", *option]).exit_code == 1
    assert submit.main(["campaign", *option]) == 1
    assert [order.place.begin for order in orders] == [begin, begin, begin]


def test_a_place_to_begin_that_there_is_not_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["run", "campaign"], ["demo"]):
        done = CliRunner().invoke(app, ["pipeline", *command, "--begin", "nonsense"])
        assert done.exit_code == 2
        assert "--begin nonsense: it must be published or anew" in done.stderr
    with pytest.raises(SystemExit) as ended:
        submit.main(["campaign", "--begin", "nonsense"])
    assert ended.value.code == 2
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_events_of_the_demo_are_shared_out_by_what_is_usual_for_each_pipeline(orders: list[Order]) -> None:
    for command in (
        ["demo", "--port", "0", "--generate", "1200"],
        ["demo", "--port", "0", "--generate", "70", "--only", "campaign"],
        ["demo", "--port", "0"],
        ["run", "campaign", "mybank", "--generate", "50"],
    ):
        assert CliRunner().invoke(app, ["pipeline", *command]).exit_code == 1
    in_all, alone, usual, each = ([order.rate_of(one) for one in order.pipelines] for order in orders)
    assert (sum(in_all), alone, set(usual), each) == (1200, [70], {20}, [50, 50])
    busy = replace(catalogue.pipeline("campaign"), rate=60.0)
    unequal = Order([busy, catalogue.pipeline("mybank")], orders[0].place, rate_in_all=1000)
    assert [unequal.rate_of(one) for one in unequal.pipelines] == [750, 250]


def test_the_queries_of_the_demo_take_turns_and_more_slowly_with_many_events(orders: list[Order]) -> None:
    for option in ([], ["--generate", "1000"], ["--only", "campaign"]):
        assert CliRunner().invoke(app, ["pipeline", "demo", "--port", "0", *option]).exit_code == 1
    usual, many, alone = (
        [(query.pace("1 second"), query.phase) for one in order.pipelines for query in one.queries] for order in orders
    )
    paces = []
    for queries in (usual, many):
        ((every, unit),) = {tuple(pace.split(" ")) for pace, _ in queries}
        assert unit == "milliseconds"
        paces.append(int(every))
        phases = [phase.partition("ms of ") for _, phase in queries if phase is not None]
        assert {of for _, _, of in phases} == {f"{every}ms"}
        assert len({after for after, _, _ in phases}) == len(queries)
    assert paces[0] < 3000 < paces[1]
    assert alone == [("1 second", None)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_where_the_disk_fails_it_says_so_and_what_to_do(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code), "/data/checkpoints/offsets")

    monkeypatch.setattr("ottla.cli.pipeline_run.fed", fail)
    monkeypatch.setattr("ottla.pipelines.submit.fed", fail)
    done = CliRunner().invoke(app, ["pipeline", "run", "campaign"])
    assert (done.exit_code, submit.main(["campaign"])) == (1, 1)
    for told in (done.stderr, capsys.readouterr().err):
        assert f"/data/checkpoints/offsets: {os.strerror(code)}; " in told.replace("\n", " ")
        assert "--data" in told
        assert "Traceback" not in told


def test_who_reads_no_further_ends_a_command_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def fail(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr("ottla.cli.pipeline_run.fed", fail)
    monkeypatch.setattr("ottla.cli.pipeline.drop_output", lambda: None)
    done = CliRunner().invoke(app, ["pipeline", "run", "campaign"])
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("60s", 60.0), ("5m", 300.0), ("1h", 3600.0)])
def test_times_have_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "0s", "-1s", "5 parsecs", "5d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(WrongUsage):
        seconds_of(text)


def test_half_a_setting_is_refused_by_all_ways_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    done = CliRunner().invoke(app, ["pipeline", "run", "campaign", "-X", "security.protocol"])
    assert done.exit_code == 2
    assert "it must look like key=value" in done.stderr
    with pytest.raises(SystemExit):
        submit.main(["campaign", "-X", "security.protocol"])
    assert "it must look like key=value" in capsys.readouterr().err


def test_offsets_are_read_as_both_sources_write_them() -> None:
    assert offsets_of('{"views":{"0":5,"1":7}}') == {("views", 0): 5, ("views", 1): 7}
    assert offsets_of(None) == offsets_of("no json") == {}
