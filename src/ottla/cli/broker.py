"""`ottla broker`: run a broker until it is told to stop."""

import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ottla.broker.config import BrokerConfig, ConfigError
from ottla.broker.properties import parse_properties

logger = logging.getLogger("ottla")

CANNOT_START = 1
WRONG_SETTINGS = 2
DEFAULT_LISTENER = "PLAINTEXT://localhost:{port}"

# A broker makes few reference cycles and many short-lived objects: collecting less often keeps pauses away.
GC_THRESHOLDS = (50_000, 20, 100)

EPILOG = """
[bold]Examples[/bold]

A broker on localhost:9092 with its data in ./ottla-data:

    ottla broker

Another place and another port:

    ottla broker --data /var/lib/ottla --port 9093

Settings under Kafka's names, from a file and one by one:

    ottla broker --config server.properties --set num.partitions=4
"""


def run(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="A server.properties file with Kafka's names.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="One setting; wins over the file. Repeatable."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="The data directory (log.dirs).", show_default="./ottla-data")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65535, help="Listen on localhost with this port; 0 picks a free one."),
    ] = None,
    log_level: Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")] = "info",
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    Once it can be used, it prints one line with its addresses on standard output; logs go to standard error.
    """
    _set_up_logging(log_level)
    try:
        broker_config = BrokerConfig.from_properties(_properties(config, settings or [], data, port))
    except ConfigError as error:
        _fail(str(error), WRONG_SETTINGS)
    try:
        _run(broker_config)
    except OSError as error:
        _fail(error.strerror or str(error), CANNOT_START)


run.__doc__ = (run.__doc__ or "") + EPILOG


def _properties(config: Path | None, settings: list[str], data: Path | None, port: int | None) -> dict[str, str]:
    properties: dict[str, str] = {}
    if config is not None:
        try:
            properties.update(parse_properties(config.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{config} cannot be read: {error}") from None
    if data is not None:
        properties["log.dirs"] = str(data)
    if port is not None:
        properties["listeners"] = DEFAULT_LISTENER.format(port=port)
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"--set {setting}: it must look like key=value, such as --set num.partitions=4")
        properties[key.strip()] = value.strip()
    return properties


def _set_up_logging(level: str) -> None:
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        _fail(f"--log-level {level}: it must be debug, info, warning or error", WRONG_SETTINGS)
    logging.basicConfig(
        level=number, stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(message)s [%(name)s]", force=True
    )


def _run(config: BrokerConfig) -> None:
    from ottla.broker.loops import run_on_best_loop

    run_on_best_loop(_serve(config))


async def _serve(config: BrokerConfig) -> None:
    from ottla.broker.broker import Broker, StartError

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    broker = Broker(config)
    try:
        await broker.start()
    except StartError as error:
        _fail(str(error), CANNOT_START)
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    addresses = ",".join(f"{endpoint.name}://{endpoint.host}:{endpoint.port}" for endpoint in broker.endpoints)
    sys.stdout.write(f"ottla broker {config.node_id} ready on {addresses}\n")
    sys.stdout.flush()
    await stop.wait()
    logger.info("shutting down")
    await broker.shutdown()


def _fail(message: str, code: int) -> NoReturn:
    typer.secho(f"ottla: {message}", err=True, fg=typer.colors.RED)
    raise typer.Exit(code)
