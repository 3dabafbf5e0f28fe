"""The end of a connection whose requests had no answers: what was handed to the system still arrives.

A system that receives something on a closed socket, a late answer for example, resets the connection, and what it had
not sent by then is lost. So the client says that it sends no more, and keeps its end open until the broker, which has
read all of it by then, closes the other one. Who waits for answers has them before it closes, and needs none of this.
"""

import asyncio
import contextlib
import socket

from ottla.client.connections_wire import Connection

# A broker that takes longer to read what is on its way gets it all the same, unless it answers something meanwhile.
PATIENCE_SECONDS = 1.0
_PIECE_BYTES = 64 * 1024


def kept_open(connection: Connection) -> socket.socket | None:
    """A second hold on the socket, which outlives the connection; None where nothing could be lost."""
    if connection.ended_by is not None or not connection.tellings.were_there:
        return None
    with contextlib.suppress(OSError):
        return socket.fromfd(connection.descriptor, socket.AF_INET, socket.SOCK_STREAM)
    return None


async def part(sock: socket.socket) -> None:
    """Close it when the broker has, or soon."""
    loop = asyncio.get_running_loop()
    with sock, contextlib.suppress(OSError):
        sock.setblocking(False)
        sock.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await loop.sock_recv(sock, _PIECE_BYTES):
                pass
