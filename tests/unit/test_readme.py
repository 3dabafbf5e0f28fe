"""Every example of the README works: the code is run, the commands are run, the links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.peers.ottla import OttlaBroker

from ottla.broker.config import BrokerConfig

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1", "COLUMNS": "140", "TERM": "dumb"}
TIMEOUT_SECONDS = 60


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def commands() -> list[str]:
    """The lines with a prompt."""
    return [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines() if line[:2] == "$ "]


OTTLA_COMMANDS = [command for command in commands() if command.startswith("ottla ")]


class DocumentedBroker(OttlaBroker):
    """A broker started with a command of the README, in a directory of its own and on a free port."""

    def __init__(self, directory: Path, documented: str) -> None:
        super().__init__(directory)
        self._documented = shlex.split(documented)[1:]

    def prepare(self) -> None:
        super().prepare()
        (self.directory / "server.properties").write_text("node.id=1\n")

    def command(self) -> list[str]:
        arguments = [
            argument.replace("server.properties", f"{self.directory}/server.properties")
            for argument in self._documented
        ]
        place = ["--data", str(self.data_directory), "--port", str(self.port or 0)]
        return [sys.executable, "-m", "ottla", *arguments, *place]


def test_the_readme_has_the_examples_that_are_tested_here() -> None:
    assert len(blocks("python")) == 3
    assert len(OTTLA_COMMANDS) >= 3


def test_the_tour(tmp_path: Path) -> None:
    """Twice, with a restart between: everything is still there, and nothing is read or billed twice."""
    own, tour, billing = blocks("python")
    expected = [f"{number} b'customer-1' b'order {number}'" for number in range(10)]
    with OttlaBroker(tmp_path) as broker:
        for turn in range(2):
            seen = [f"{10 * turn + number} b'customer-1' b'order {number}'" for number in range(10)]
            assert run_example(own, broker, tmp_path) == seen
            assert run_example(tour, broker, tmp_path) == expected
            assert run_example(billing, broker, tmp_path) == ["billed 10 orders"]
            assert broker.stop() == 0
            broker.start()
        assert all_values(broker, "bills") == [f"bill for order {number % 10}".encode() for number in range(20)]


def run_example(code: str, broker: OttlaBroker, directory: Path) -> list[str]:
    assert "localhost:9092" in code
    ported = code.replace("localhost:9092", f"localhost:{broker.port}")
    done = subprocess.run(
        [sys.executable, "-c", ported],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        cwd=directory,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def all_values(broker: OttlaBroker, topic: str) -> list[bytes | None]:
    """What a reader of committed records finds in partition 0."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "all", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_SECONDS)
    found: list[bytes | None] = []
    while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
        found += [message.value() for message in consumer.consume(100, timeout=1)]
    consumer.close()
    return found


@pytest.mark.parametrize("command", [command for command in OTTLA_COMMANDS if command.endswith("--help")])
def test_commands_that_help(command: str) -> None:
    arguments = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0
    assert "Examples" in done.stdout


@pytest.mark.parametrize("command", [command for command in OTTLA_COMMANDS if not command.endswith("--help")])
def test_commands_that_start_a_broker(tmp_path: Path, command: str) -> None:
    with DocumentedBroker(tmp_path, command) as broker:
        assert broker.port


def test_the_line_that_a_broker_prints(tmp_path: Path) -> None:
    (line,) = re.findall(r"^ottla broker .*$", "".join(blocks("console")), re.M)
    with OttlaBroker(tmp_path) as broker:
        assert line.replace("9092", str(broker.port)) in broker.log_since_start().splitlines()


def test_settings_that_are_named() -> None:
    given = dict(setting.split("=", 1) for setting in re.findall(r"--set (\S+?=[^\s`]+)", README))
    assert {"listeners", "advertised.listeners"} <= set(given)
    config = BrokerConfig.from_properties(given)
    assert config.listeners[0].host == "0.0.0.0"
    assert config.advertised_listeners[0].host == "broker-1.example"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b", README))))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()
