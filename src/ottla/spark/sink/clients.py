"""Clients that live as long as their Python process. Spark hands a process one task after the other, and in the driver
one micro-batch after the other; to connect anew each time would cost more than a small batch does.

A process works on one thing at a time, so nobody shares a client. There are few: as many as different settings.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ottla.client.sync.admin import Admin
from ottla.client.sync.producer import Producer

Client = TypeVar("Client")

_MOST_CLIENTS = 8
_clients: dict[object, Any] = {}


def kept(name: object, make: Callable[[], Client]) -> Client:
    """The client of that name, made if need be. The one that was not used for longest goes when there are too many."""
    client: Client = _clients.pop(name, None) or make()
    _clients[name] = client
    while len(_clients) > _MOST_CLIENTS:
        forget(next(iter(_clients)))
    return client


def forget(name: object, **how: object) -> None:
    """Close a client that is of no use any more, `how` it likes it; the next one of its name is made anew."""
    client = _clients.pop(name, None)
    if client is not None:
        client.close(**how)


def name_of(kind: str, settings: Mapping[str, object]) -> tuple[object, ...]:
    return (kind, *sorted((name, str(value)) for name, value in settings.items()))


def admin(settings: Mapping[str, object]) -> Admin:
    return kept(name_of("admin", settings), lambda: Admin(config=settings))


def producer(settings: Mapping[str, object]) -> "Producer[Any, Any]":
    return kept(name_of("producer", settings), lambda: Producer(config=settings))
