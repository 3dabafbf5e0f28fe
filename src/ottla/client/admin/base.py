"""What all parts of the admin client share: the connections, and a call with its time limit."""

import contextlib
from collections.abc import Callable

from ottla.client.admin.call import Call
from ottla.client.errors import ClientClosed, InvalidRequest
from ottla.client.network import Network

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do, whenever that has changed."""


class AdminPart:
    """A theme of the admin client. Everything belongs to one event loop."""

    _default_timeout_seconds: float
    _request_timeout_seconds: float
    _network: Network | None
    _is_closed: bool

    def _call(self, timeout_seconds: float | None) -> Call:
        if self._is_closed:
            raise ClientClosed("this admin client was closed: make a new one")
        if self._network is None:
            raise ClientClosed("this admin client was not started: use `async with`, or await start() first")
        if timeout_seconds is not None and timeout_seconds <= 0:
            raise InvalidRequest(f"timeout is {timeout_seconds}: it must be above 0 seconds")
        seconds = self._default_timeout_seconds if timeout_seconds is None else timeout_seconds
        return Call(self._network, seconds, self._request_timeout_seconds)


def tell(progress: Progress | None, done: int, total: int) -> None:
    """Report progress; what the user's callback raises is not allowed to end the work half way."""
    if progress is not None:
        with contextlib.suppress(Exception):
            progress(done, total)
