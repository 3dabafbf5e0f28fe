"""Sends, receives and looks at sockets that keep the interpreter while they last.

Python's own give it away around every call of the system, since a call may take long. Where nothing is waited for, a
small one takes a few microseconds; and while another thread wants the interpreter, whoever gave it away gets it back
only when that one gives it away in turn. So the threads of a program that sends and receives single records spent most
of their time with waiting for each other, the more so the more they fell behind.

Where nothing could be compiled, Python's own are used.
"""

import selectors
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from ottla.protocol.encoder import Part
from ottla.twins import native_of

if TYPE_CHECKING:
    from ottla.client import _native
else:
    _native = native_of("ottla.client")


class StreamSocket(Protocol):
    """What a connection does with its socket, which does not block."""

    def send(self, data: Part, /) -> int: ...

    def sendmsg(self, parts: Sequence[Part], /) -> int: ...

    def recv_into(self, room: memoryview, /) -> int: ...

    def close(self) -> None: ...


def prompt(sock: socket.socket) -> StreamSocket:
    """The same socket, prompt where it can be. It must not block. To encrypt takes too long for that."""
    if _native is None or isinstance(sock, ssl.SSLSocket):
        # One with TLS has no `sendmsg` that works: who has it sends one part after the other.
        return cast(StreamSocket, sock)
    return _native.PromptSocket(sock)


Look = Callable[[int], list[tuple[int, int]]]
Watch = Callable[[int, float | None], list[tuple[int, int]]]

_epoll = _native if selectors.DefaultSelector is getattr(selectors, "EpollSelector", None) else None

# The descriptors of an epoll that are ready, each with its events: now, or as soon as there are some, within some time
# or for ever; who waits for them gives the interpreter away. None where selectors are of another kind.
ready_now: Look | None = None if _epoll is None else _epoll.ready_now
ready_within: Watch | None = None if _epoll is None else _epoll.ready_within
