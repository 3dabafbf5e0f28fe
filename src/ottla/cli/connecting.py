"""How a command reaches its cluster: the options that all of them share, as settings of the clients."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP_SERVERS"
CONFIG_VARIABLE = "OTTLA_CLIENT_CONFIG"
DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT_SECONDS = 15.0

CONNECTION = "Connection"
OUTPUT = "Output"


def bootstrap_option(help: str, *more_names: str) -> Any:  # noqa: A002  # as typer has it
    return typer.Option(
        "--bootstrap-server",
        *more_names,
        "-b",
        metavar="HOST:PORT,...",
        envvar=BOOTSTRAP_VARIABLE,
        help=f"{help}  [default: {DEFAULT_BOOTSTRAP}]",
        show_default=False,
        rich_help_panel=CONNECTION,
    )


Bootstrap = Annotated[str | None, bootstrap_option("Some brokers of the cluster.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="KEY=VALUE",
        help="A setting of the client under Kafka's name, such as security.protocol=SSL. Repeatable.",
        rich_help_panel=CONNECTION,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-F",
        metavar="FILE",
        envvar=CONFIG_VARIABLE,
        help="A properties file with settings of the client; -X wins over it.",
        show_default=False,
        rich_help_panel=CONNECTION,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long the command may wait for brokers.",
        rich_help_panel=CONNECTION,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="JSON lines, for programs.", rich_help_panel=OUTPUT, show_default=False)
]


class WrongUsage(Exception):
    """What was asked for cannot be meant; the text says what could be."""


def pairs(
    given: Iterable[str] | None, option: str = "--set", example: str = "retention.ms=3600000"
) -> list[tuple[str, str]]:
    """What was given as key=value, without blanks around either."""
    found = []
    for one in given or ():
        key, separator, value = one.partition("=")
        if not separator or not key.strip():
            raise WrongUsage(f"{option} {one}: it must look like key=value, such as {option} {example}")
        found.append((key.strip(), value.strip()))
    return found


@dataclass(frozen=True)
class Target:
    """A cluster, and the settings to reach it with; later ones win."""

    bootstrap: str | None = None
    settings: list[str] = field(default_factory=list)
    config_file: Path | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    def properties(self, **own: object) -> dict[str, object]:
        """Kafka's names and the values given for them; `own` are what the command sets by itself, unless told
        otherwise."""
        properties: dict[str, object] = {name.replace("_", "."): value for name, value in own.items()}
        properties |= self._from_file()
        properties |= pairs(self.settings, "-X", "client.id=me")
        if self.bootstrap:
            properties["bootstrap.servers"] = self.bootstrap
        properties.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
        return properties

    def admin_properties(self) -> dict[str, object]:
        """For the admin client, which gives up when the command may wait no longer."""
        milliseconds = int(self.timeout_seconds * 1000)
        return self.properties(client_id="ottla-cli", default_api_timeout_ms=milliseconds)

    def _from_file(self) -> dict[str, object]:
        if self.config_file is None:
            return {}
        from ottla.runtime.properties import parse_properties

        try:
            return dict(parse_properties(self.config_file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUsage(f"{self.config_file} cannot be read: {error}") from None


def target(
    bootstrap: str | None, settings: list[str] | None, config_file: Path | None, timeout_seconds: float
) -> Target:
    return Target(bootstrap, list(settings or ()), config_file, timeout_seconds)
