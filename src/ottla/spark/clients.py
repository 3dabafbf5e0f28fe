"""Clients that live as long as their Python process. Spark hands a process one task after the other, and in the driver
one micro-batch after the other; to connect anew each time would cost more than a small batch does.

A process works on one thing at a time, so nobody shares a client. There are few: as many as different settings, and no
more than a handful, of which the one that was not used for longest goes first. One that failed is not used again.
"""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.client.errors import OttlaError

if TYPE_CHECKING:
    from ottla.client.sync.admin import Admin
    from ottla.client.sync.producer import Producer

Client = TypeVar("Client")
Name = tuple[object, ...]

_MOST_CLIENTS: Final = 8
_clients: dict[Name, Any] = {}
_owner = os.getpid()


def name_of(kind: str, settings: Mapping[str, object]) -> Name:
    return (kind, *sorted((name, str(value)) for name, value in settings.items()))


def kept(name: Name, make: Callable[[], Client]) -> Client:
    """The client of that name, made if need be."""
    client: Client = _taken(name) or make()
    _keep(name, client)
    return client


@contextmanager
def borrowed(name: Name, make: Callable[[], Client], **how: object) -> Generator[Client, None, None]:
    """The client of that name for as long as the block lasts; where that fails, the client is closed, `how` it likes
    it, and not used again."""
    client: Any = _taken(name) or make()
    try:
        yield client
    except BaseException:
        with suppress(OttlaError):
            client.close(**how)
        raise
    _keep(name, client)


def forget(name: Name, **how: object) -> None:
    """Close a client that is of no use any more, `how` it likes it; the next one of its name is made anew."""
    client = _taken(name)
    if client is not None:
        client.close(**how)


def admin(settings: Mapping[str, object]) -> "Admin":
    from ottla.client.sync.admin import Admin

    return kept(name_of("admin", settings), lambda: Admin(config=settings))


def producer(settings: Mapping[str, object]) -> "Producer[Any, Any]":
    from ottla.client.sync.producer import Producer

    return kept(name_of("producer", settings), lambda: Producer(config=settings))


def _taken(name: Name) -> Any:
    """Those of a process that this one was forked from are not for it."""
    global _owner
    if _owner != os.getpid():
        _clients.clear()
        _owner = os.getpid()
    return _clients.pop(name, None)


def _keep(name: Name, client: object) -> None:
    _clients[name] = client
    while len(_clients) > _MOST_CLIENTS:
        with suppress(OttlaError):
            forget(next(iter(_clients)))
