"""The command as a user meets it: help with examples, one clear line for every mistake, exit codes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.peers.ottla import OttlaBroker
from tests.peers.process import ServerFailed

from ottla import __version__

ROOT = Path(__file__).resolve().parents[3]
OK, CANNOT_START, WRONG_SETTINGS = 0, 1, 2


def ottla(*arguments: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1", "COLUMNS": "140", "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-m", "ottla", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment,
        cwd=directory,
        check=False,
    )


def test_help_lists_the_commands() -> None:
    done = ottla("--help")
    assert done.returncode == OK
    assert "broker" in done.stdout
    assert "Run a broker until Ctrl-C or SIGTERM." in done.stdout


def test_version() -> None:
    assert ottla("--version").stdout.strip() == f"ottla {__version__}"


def test_help_of_the_broker_has_examples_and_every_option() -> None:
    done = ottla("broker", "--help")
    assert done.returncode == OK
    assert "Examples" in done.stdout
    for example in ("ottla broker --data /var/lib/ottla --port 9093", "ottla broker --config server.properties"):
        assert example in done.stdout
    for option in ("--config", "--set", "--data", "--port", "--log-level", "--log-format"):
        assert option in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--set", "num.partitions=none"], "num.partitions is 'none': it must be a whole number"),
        (["--set", "listeners=SSL://localhost:9092"], "PLAINTEXT is what this broker speaks"),
        (["--set", "authorizer.class.name=a.Authorizer"], "authorizer.class.name promises access rules (ACLs)"),
        (["--set", "log.retention.hours=soon"], "log.retention.hours"),
        (["--set", "num.partitions"], "--set num.partitions: it must look like key=value"),
        (["--config", "missing.properties"], "missing.properties cannot be read"),
        (["--log-level", "loud"], "--log-level loud: it must be debug, info, warning or error"),
        (["--log-format", "xml"], "--log-format xml: it must be text or json"),
        (["--set", "ottla.http.listeners=localhost:9644"], "each item must look like http://localhost:9644"),
    ],
)
def test_wrong_settings_are_told_in_one_line(tmp_path: Path, arguments: list[str], expected: str) -> None:
    done = ottla("broker", "--data", str(tmp_path / "data"), *arguments, directory=tmp_path)
    assert done.returncode == WRONG_SETTINGS
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("ottla: ")
    assert expected in line
    assert done.stdout == ""
    assert not (tmp_path / "data").exists()


def test_options_that_do_not_exist(tmp_path: Path) -> None:
    done = ottla("broker", "--prot", "9093", directory=tmp_path)
    assert done.returncode == WRONG_SETTINGS
    assert "--port" in done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ottla("broker", "--data", str(tmp_path), "--set", f"listeners=PLAINTEXT://127.0.0.1:{port}")
    assert done.returncode == CANNOT_START
    line = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(rf"ottla: .*cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use; .*", line)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_that_is_asked_to_end_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    with OttlaBroker(tmp_path) as broker:
        assert re.search(r"^ottla broker 1 ready on PLAINTEXT://localhost:\d+$", broker.log_since_start(), re.M)
        os.kill(broker.pid, number)
        assert broker.stop() == OK
    assert "Traceback" not in broker.log_since_start()


def test_a_directory_in_use_names_the_process(tmp_path: Path) -> None:
    with OttlaBroker(tmp_path) as broker:
        done = ottla("broker", "--data", str(broker.data_directory), "--port", "0")
        assert done.returncode == CANNOT_START
        assert f"process {broker.pid}" in done.stderr.strip().splitlines()[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--set", "num.partitions=none"], ["--log-level", "loud"]])
def test_where_logs_are_json_the_last_word_is_too(tmp_path: Path, arguments: list[str]) -> None:
    done = ottla("broker", "--data", str(tmp_path / "data"), "--log-format", "json", *arguments)
    assert done.returncode == WRONG_SETTINGS
    (line,) = (json.loads(line) for line in done.stderr.splitlines())
    assert (line["level"], line["logger"]) == ("CRITICAL", "ottla")
    assert "it must be" in line["message"]


def test_every_line_of_the_log_is_json_and_the_http_address_is_told(tmp_path: Path) -> None:
    with WatchedBroker(tmp_path) as broker:
        (url,) = re.findall(r"metrics on (\S+)", broker.log_since_start())
        for page, expected in (("metrics", "process_open_fds "), ("readyz", "ready\n"), ("healthz", "ok\n")):
            with urllib.request.urlopen(url.replace("metrics", page), timeout=60) as answer:
                assert expected in answer.read().decode()
        assert broker.stop() == OK
        lines = broker.log_since_start().splitlines()
    told = [line for line in lines if line.startswith("ottla broker")]
    logged = [json.loads(line) for line in lines if line not in told]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in logged)
    (address,) = (line["fields"]["address"] for line in logged if "fields" in line)
    assert told[0] == f"ottla broker 1 metrics on {address}/metrics"
    assert told[1].startswith("ottla broker 1 ready on ")
    assert "shutting down" in [line["message"] for line in logged]


class WatchedBroker(OttlaBroker):
    """A broker with HTTP on a free port, that logs JSON."""

    def command(self) -> list[str]:
        return [*super().command(), "--log-format", "json", "--set", "ottla.http.listeners=http://127.0.0.1:0"]


def test_settings_come_from_a_file_and_options_win(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(f"# a broker\nbroker.id = 7\nlog.dirs={tmp_path / 'data'}\nlisteners=nonsense\n")
    broker = ConfiguredBroker(tmp_path)
    with broker:
        assert "ottla broker 7 ready on" in broker.log_since_start()
        assert (tmp_path / "data" / "meta.properties").exists()
    settings.write_text("node.id=many\n")
    with pytest.raises(ServerFailed, match=r"node\.id is 'many'"):
        broker.start()


class ConfiguredBroker(OttlaBroker):
    """A broker whose settings are in a file; only the port is given by an option."""

    def command(self) -> list[str]:
        settings = str(self.directory / "server.properties")
        return [sys.executable, "-m", "ottla", "broker", "--config", settings, "--port", str(self.port or 0)]
