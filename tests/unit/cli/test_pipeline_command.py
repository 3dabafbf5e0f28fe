"""`ottla pipeline` as far as it goes without Spark; what needs Spark is in tests/pipelines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ottla.cli.connecting import WrongUsage
from ottla.cli.main import app
from ottla.cli.pipeline import seconds_of
from ottla.pipelines import submit
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.progress import PROGRESS, Progress, offsets_of
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
            one = Progress("campaign", "comparisons", "running", batch=batch, rows_per_second=12.5, lag=7)
            broker.produce(PROGRESS.name, json.dumps(one.row()), key=one.key)
        done = CliRunner().invoke(app, command)
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["pipeline"], row["batch"], row["rows_per_second"], row["lag"]) == ("campaign", 2, 12.5, 7)


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
