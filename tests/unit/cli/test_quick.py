"""The short way and the long way into `ottla broker` read the same arguments the same way."""

import pytest
import typer
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.cli.quick import OPTIONS, read_options
from ottla.cli.serve import BrokerOptions


def read_the_long_way(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> BrokerOptions | None:
    """None when the arguments are refused."""
    seen: list[BrokerOptions] = []
    monkeypatch.setattr("ottla.cli.serve.serve", seen.append)
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code == 0) == bool(seen)
    return seen[0] if seen else None


@pytest.mark.parametrize(
    "line",
    [
        "broker",
        "broker --port 0",
        "broker --port=65535 --data /tmp/x",
        "broker -p 9093 -d here -c server.properties",
        "broker --set a=b --set c=d=e -s f=",
        "broker --set=a=b --log-level debug",
        "broker --log-format json --log-level=info --log-format=text",
        "broker --config=one --config two",
        "broker --data= --log-level=",
    ],
)
def test_both_ways_read_the_same(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = line.split(" ")
    options = read_options(arguments)
    assert options is not None
    assert options == read_the_long_way(arguments, monkeypatch)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--version",
        "topics",
        "broker --help",
        "broker --port 65536",
        "broker --port -1",
        "broker --port ٣",
        "broker --port",
        "broker --data --port 0",
        "broker -p9093",
        "broker -p=9093",
        "broker --por 9093",
        "broker 9093",
        "broker --",
    ],
)
def test_whatever_is_not_plain_goes_the_long_way(line: str) -> None:
    assert read_options(line.split(" ")) is None


def test_the_short_way_knows_every_option() -> None:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    declared = {flag: str(option.name) for option in command.commands["broker"].params for flag in option.opts}
    declared = {flag: name for flag, name in declared.items() if name != "help"}
    assert declared == OPTIONS
