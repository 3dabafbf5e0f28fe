"""A proxy in front of a broker that can lose answers.

A broker that is killed between storing a batch and answering leaves its producer in doubt: it must send the batch
again, and the restarted broker must know it. That moment is too short to hit by chance. `mute` makes it long: requests
still go through, answers of all connections that exist then are thrown away for good.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.peers.ports import LOOPBACK

_BUFFER_BYTES = 1 << 18


class _Link:
    """One client's connection and the broker's side of it; when either ends, both do."""

    def __init__(self, client: socket.socket, broker: socket.socket) -> None:
        self.muted = False
        self._client = client
        self._broker = broker
        for pump in (self._requests, self._answers):
            threading.Thread(target=pump, daemon=True).start()

    def close(self) -> None:
        for side in (self._client, self._broker):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    def _requests(self) -> None:
        with contextlib.suppress(OSError):
            while piece := self._client.recv(_BUFFER_BYTES):
                self._broker.sendall(piece)
        self.close()

    def _answers(self) -> None:
        with contextlib.suppress(OSError):
            while piece := self._broker.recv(_BUFFER_BYTES):
                if not self.muted:
                    self._client.sendall(piece)
        self.close()


class Proxy:
    """Listens at once; `broker_port` is where it leads, also after the broker was restarted."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._links: list[_Link] = []
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def mute(self) -> None:
        """From now on nobody who is connected hears anything again."""
        for link in self._links:
            link.muted = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection((LOOPBACK, self._broker_port))
                except OSError:
                    client.close()
                    continue
                for side in (client, broker):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._links.append(_Link(client, broker))
