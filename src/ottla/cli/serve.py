"""What `ottla broker` does, without the command line around it."""

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from ottla.broker.config import BrokerConfig, ConfigError
from ottla.runtime.properties import parse_properties

logger = logging.getLogger("ottla")

CANNOT_START = 1
WRONG_SETTINGS = 2
TEXT, JSON = "text", "json"
DIRECTORIES_FAILED = 1
DEFAULT_LISTENER = "PLAINTEXT://localhost:{port}"

# A broker makes few reference cycles and many short-lived objects: collecting less often keeps pauses away.
GC_THRESHOLDS = (50_000, 20, 100)


@dataclass
class BrokerOptions:
    """The options of `ottla broker`, as they were given."""

    config: Path | None = None
    settings: list[str] | None = None
    data: Path | None = None
    port: int | None = None
    log_level: str = "info"
    log_format: str = "text"


class CommandFailed(Exception):
    """The command ends with this message and code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def serve(options: BrokerOptions) -> None:
    """Run a broker until it is told to stop."""
    _set_up_logging(options.log_level, options.log_format)
    try:
        config = BrokerConfig.from_properties(_properties(options))
    except ConfigError as error:
        raise CommandFailed(str(error), WRONG_SETTINGS) from error
    from ottla.broker.loops import run_on_best_loop

    _allow_many_files()
    try:
        run_on_best_loop(_serve(config))
    except OSError as error:
        raise CommandFailed(error.strerror or str(error), CANNOT_START) from error


def _allow_many_files() -> None:
    """As many descriptors as the system lets this process have: the usual limit is for programs that use `select`."""
    try:
        import resource
    except ImportError:
        return
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed != most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def report(error: CommandFailed, options: BrokerOptions) -> None:
    """Tell the user why the command ends, or whoever reads the logs for him."""
    if options.log_format == JSON:
        logger.critical("%s", error)
        return
    import typer

    typer.secho(f"ottla: {error}", err=True, fg=typer.colors.RED)


def _properties(options: BrokerOptions) -> dict[str, str]:
    properties: dict[str, str] = {}
    if options.config is not None:
        try:
            properties.update(parse_properties(options.config.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{options.config} cannot be read: {error}") from None
    if options.data is not None:
        properties["log.dirs"] = str(options.data)
    if options.port is not None:
        properties["listeners"] = DEFAULT_LISTENER.format(port=options.port)
    for setting in options.settings or ():
        key, separator, value = setting.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"--set {setting}: it must look like key=value, such as --set num.partitions=4")
        properties[key.strip()] = value.strip()
    return properties


def _set_up_logging(level: str, form: str) -> None:
    if form not in (TEXT, JSON):
        raise CommandFailed(f"--log-format {form}: it must be text or json", WRONG_SETTINGS)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(message)s [%(name)s]", force=True)
    if form == JSON:
        from ottla.cli.json_logs import JsonFormatter

        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise CommandFailed(f"--log-level {level}: it must be debug, info, warning or error", WRONG_SETTINGS)
    logging.getLogger().setLevel(number)


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
        raise CommandFailed(str(error), CANNOT_START) from error
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    addresses = ",".join(f"{endpoint.name}://{endpoint.host}:{endpoint.port}" for endpoint in broker.endpoints)
    if broker.http_endpoints:
        from ottla.broker.http import address_of

        for endpoint in broker.http_endpoints:
            sys.stdout.write(f"ottla broker {config.node_id} metrics on {address_of(endpoint)}/metrics\n")
    sys.stdout.write(f"ottla broker {config.node_id} ready on {addresses}\n")
    sys.stdout.flush()
    await _first_of(stop, broker.all_directories_failed)
    logger.info("shutting down")
    await broker.shutdown()
    if broker.all_directories_failed.is_set():
        raise CommandFailed("every log directory has failed; the log says how", DIRECTORIES_FAILED)


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
