"""How a command reaches its cluster: the options that all of them share, as settings of the clients."""

import os
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
        help=rf"{help}  \[env var: {BOOTSTRAP_VARIABLE}] \[default: {DEFAULT_BOOTSTRAP}]",
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
        help=rf"A properties file with settings of the client; -X wins over it.  \[env var: {CONFIG_VARIABLE}]",
        show_default=False,
        rich_help_panel=CONNECTION,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long the command may wait for brokers.",
        show_default="15, and 3 where all refuse the connection",
        rich_help_panel=CONNECTION,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="JSON lines, for programs.", rich_help_panel=OUTPUT, show_default=False)
]


class WrongUsage(Exception):
    """What was asked for cannot be meant, on no cluster; the text says what could be."""


class NotThere(Exception):
    """What was named does not exist on this cluster, such as an unknown topic; the text says what does."""


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
    """A cluster, and the settings to reach it with. Brokers may be named in many places; the first of these counts:
    `bootstrap`, `settings`, the file where it was typed, `other_bootstrap` (of the environment), any other file."""

    bootstrap: str | None = None
    settings: list[str] = field(default_factory=list)
    config_file: Path | None = None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    other_bootstrap: str | None = None
    is_file_typed: bool = True
    is_timeout_typed: bool = False

    @property
    def timeout_ms(self) -> int:
        return int(self.timeout_seconds * 1000)

    def properties(self, **own: object) -> dict[str, object]:
        """Kafka's names and the values given for them, however they were spelt; `own` are what the command sets by
        itself, unless told otherwise."""
        properties: dict[str, object] = {name.replace("_", "."): value for name, value in own.items()}
        from_file = self._from_file()
        typed = _by_kafka_names(pairs(self.settings, "-X", "client.id=me"))
        properties |= from_file | typed
        brokers = "bootstrap.servers"
        is_named = brokers in typed or (self.is_file_typed and brokers in from_file)
        if self.bootstrap:
            properties[brokers] = self.bootstrap
        elif self.other_bootstrap and not is_named:
            properties[brokers] = self.other_bootstrap
        properties.setdefault(brokers, DEFAULT_BOOTSTRAP)
        return properties

    def admin_properties(self) -> dict[str, object]:
        """For the admin client, which gives up when the command may wait no longer."""
        return self.properties(client_id="ottla-cli", default_api_timeout_ms=self.timeout_ms)

    def _from_file(self) -> dict[str, object]:
        if self.config_file is None:
            return {}
        from ottla.runtime.properties import parse_properties

        try:
            found = parse_properties(self.config_file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUsage(f"{self.config_file} cannot be read: {error}") from None
        return _by_kafka_names(found.items())


def _by_kafka_names(given: Iterable[tuple[str, str]]) -> dict[str, object]:
    from ottla.client.config import kafka_name

    return {kafka_name(name): value for name, value in given}


def target(
    bootstrap: str | None, settings: list[str] | None, config_file: Path | None, timeout_seconds: float | None
) -> Target:
    """What options and environment say. The variables are read here, not by the options: what was typed must win over
    them, wherever it was typed."""
    variable = os.environ.get(CONFIG_VARIABLE)
    file = config_file if config_file is not None or not variable else Path(variable)
    return Target(
        bootstrap,
        list(settings or ()),
        file,
        DEFAULT_TIMEOUT_SECONDS if timeout_seconds is None else timeout_seconds,
        os.environ.get(BOOTSTRAP_VARIABLE),
        is_file_typed=config_file is not None,
        is_timeout_typed=timeout_seconds is not None,
    )
