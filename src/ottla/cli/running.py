"""Running a command: an event loop, and one clear line and an exit code for whatever goes wrong.

| exit code | means                                                                                     |
|-----------|-------------------------------------------------------------------------------------------|
| 0         | done                                                                                      |
| 1         | a broker refused something, does not have what was named, or could not be reached; with   |
|           | many things, at least one; or the work had to end in the middle, as at a wrong line or on  |
|           | a full disk                                                                               |
| 2         | the command, its settings or its files are wrong, for any cluster; nothing was done       |
| 130       | ended with Ctrl-C or SIGTERM before it was done                                           |
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ottla.cli.connecting import NotThere, Target, WrongUsage
from ottla.cli.output import Output
from ottla.cli.waiting import NoBroker

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin, Results

FAILED = 1
WRONG = 2
INTERRUPTED = 130

Key = TypeVar("Key")
Value = TypeVar("Value")
Argument = TypeVar("Argument")


class CommandFailed(Exception):
    """The command ends with this text."""


def run(work: Callable[[], Awaitable[bool | None]], output: Output, *, is_endless: bool = False) -> None:
    """Run a command to its end; `work` gives False where part of it failed and was told already. An endless one has
    no other end than Ctrl-C or SIGTERM, which is no failure then."""
    from ottla.client.errors import ConfigError, OttlaError

    gc.enable()
    # The error of the command says what the clients would log on the way to it.
    logging.getLogger("ottla").addHandler(logging.NullHandler())
    try:
        succeeded = asyncio.run(_awaited(work))
        sys.stdout.flush()
    except (ConfigError, WrongUsage, ValueError) as error:
        tell_error(str(error), output)
        raise typer.Exit(WRONG) from None
    except (OttlaError, CommandFailed, NoBroker, NotThere) as error:
        code = getattr(error, "code", getattr(error.__cause__, "code", None))
        tell_error(str(error), output, getattr(code, "name", None))
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:
        # Whoever reads has seen enough.
        drop_output()
        raise typer.Exit from None
    except OSError as error:
        drop_output()
        tell_error(_system_error(error), output)
        raise typer.Exit(FAILED) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(0 if is_endless else INTERRUPTED) from None
    if succeeded is False:
        raise typer.Exit(FAILED)


def drop_output() -> None:
    """What is still buffered must not be written when Python ends: it would fail once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"reading or writing failed: {where}{error.strerror or error}"


async def _awaited(work: Callable[[], Awaitable[bool | None]]) -> bool | None:
    """SIGTERM ends the work as Ctrl-C does: what is open is closed."""
    task = asyncio.current_task()
    if task is not None:
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work()


def run_admin(
    target: Target,
    output: Output,
    work: Callable[["AsyncAdmin"], Awaitable[bool | None]],
    *,
    is_endless: bool = False,
) -> None:
    """Run a command that needs an admin client."""

    async def with_admin() -> bool | None:
        async with connected_admin(target, output) as admin:
            return await work(admin)

    run(with_admin, output, is_endless=is_endless)


@contextlib.asynccontextmanager
async def connected_admin(target: Target, output: Output) -> AsyncIterator["AsyncAdmin"]:
    """An admin client that is connected, or the error that says why not."""
    from ottla.cli.waiting import Wait, watched
    from ottla.client.admin import AsyncAdmin

    admin = AsyncAdmin(config=target.admin_properties())
    servers = tuple(admin.config.bootstrap_servers)
    async with watched(Wait(servers, target.timeout_seconds, not target.is_timeout_typed), output):
        await admin.start()
    async with admin:
        yield admin


async def in_daemon_thread(work: Callable[[Argument], Value], argument: Argument) -> Value:
    """For a read that may never end, as of a terminal: a command that is told to end leaves it behind."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Value] = loop.create_future()

    def settle(set_outcome: Callable[[object], None], outcome: object) -> None:
        if not done.done():
            set_outcome(outcome)

    def read() -> None:
        setting: tuple[Callable[[Any], None], object]
        try:
            setting = (done.set_result, work(argument))
        except BaseException as error:
            setting = (done.set_exception, error)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, *setting)

    threading.Thread(target=read, daemon=True).start()
    return await done


def tell_error(text: str, output: Output, code: str | None = None) -> None:
    if output.is_json:
        line = {"error": text} if code is None else {"error": text, "code": code}
        sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
    else:
        typer.secho(f"ottla: {text}", err=True, fg=typer.colors.RED)


def tell_results(
    output: Output, results: "Results[Key, Value]", what: str, done: str, describe: Callable[[Value], dict[str, object]]
) -> bool:
    """A line for each thing that was done, and for each that was not; False where there is one of those."""
    for key, value in results.succeeded.items():
        output.done({what: str(key), "status": done, **describe(value)}, f"{what} {key}: {done}")
    for key, error in results.errors.items():
        code = getattr(getattr(error, "code", None), "name", None)
        if output.is_json:
            output.line({what: str(key), "status": "failed", "code": code, "error": str(error)})
        else:
            tell_error(str(error), output)
    return not results.errors
