"""Waiting for the first broker of a command: what is waited for is said, and a wait without hope ends early.

    0 s       1 s                                   3 s                          the command's timeout
    connect   say what is waited for; look on by    every address refused all    the client's own error
              trying the addresses ourselves        the time: end

Where a timeout was typed, it holds: somebody may wait for a broker that is only starting.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from ottla.cli.output import Output

NOTICE_SECONDS = 1.0
REFUSED_SECONDS = 3.0
_PROBE_SECONDS = 0.5
_USUAL_PORT = 9092

Address = tuple[str, int]


class NoBroker(Exception):
    """Nobody listens at any of the addresses."""


@dataclass(frozen=True, slots=True)
class Wait:
    """`servers` are shown as they were written; `ends_early` says whether refusals may end it."""

    servers: tuple[str, ...]
    seconds: float
    ends_early: bool


@contextlib.asynccontextmanager
async def watched(wait: Wait, output: Output) -> AsyncIterator[None]:
    """Within: the wait for a broker. Raises `NoBroker` where it has no hope."""
    watch = _Watch(wait, output)
    scope = asyncio.timeout(None)
    try:
        async with scope:
            watching = asyncio.get_running_loop().create_task(watch.run(scope))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if not scope.expired():
            raise
        raise NoBroker(_nobody_there(wait, watch.reason)) from None


class _Watch:
    def __init__(self, wait: Wait, output: Output) -> None:
        self._wait = wait
        self._output = output
        self.reason = ""

    async def run(self, scope: asyncio.Timeout) -> None:
        from ottla.client.config import parse_address

        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.sleep(NOTICE_SECONDS)
        self._output.tell(
            f"waiting for a broker at {', '.join(self._wait.servers)}, {self._wait.seconds:g} s at most (Ctrl-C ends)"
        )
        addresses = [parse_address(server) for server in self._wait.servers]
        while self._wait.ends_early:
            reasons = [await _refusal(address) for address in addresses]
            refusals = [reason for reason in reasons if reason is not None]
            if len(refusals) < len(reasons):
                begun = loop.time()
            elif loop.time() - begun >= REFUSED_SECONDS:
                self.reason = ", ".join(dict.fromkeys(refusals))
                scope.reschedule(loop.time())
                return
            await asyncio.sleep(_PROBE_SECONDS)


async def nobody_listens(servers: Iterable[str]) -> bool:
    """Whether all of these addresses refuse a connection now."""
    from ottla.client.config import parse_address

    return all([await _refusal(parse_address(server)) is not None for server in servers])


async def _refusal(address: Address) -> str | None:
    """Why nobody can be there now; None where somebody may be."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError as error:
        return f"{address[0]}: {error.strerror or error}"
    for family, kind, protocol, _, where in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setblocking(False)
            try:
                async with asyncio.timeout(_PROBE_SECONDS):
                    await loop.sock_connect(probe, where)
            except ConnectionRefusedError:
                continue
            except OSError:
                return None
            return None
    return "connection refused"


def _nobody_there(wait: Wait, reason: str) -> str:
    from ottla.client.config import parse_address

    addresses = [parse_address(server) for server in wait.servers]
    text = f"no broker at {', '.join(wait.servers)} ({reason})"
    if all(_is_here(host) for host, _ in addresses):
        port = addresses[0][1]
        option = "" if port == _USUAL_PORT else f" --port {port}"
        return f"{text}: start one with 'ottla broker{option}', or name another with --bootstrap-server"
    return f"{text}: is it running, and is it the right port? --timeout {2 * wait.seconds:g} waits that long for it"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
