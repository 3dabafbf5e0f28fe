"""The life of a sync admin client."""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from ottla.client.admin.life import AdminLife
from ottla.client.sync.life import ended, started
from ottla.client.sync.loop_thread import LoopThread


class AdminFace:
    """`KIND` is the async client that waits behind the methods."""

    KIND: ClassVar[type[AdminLife]]

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        **settings: Any,
    ) -> None:
        self._thread = LoopThread("admin")
        self._client = self.KIND(bootstrap_servers, config=config, **settings)
        self._finalizer = started(self._thread, self, self._client.start)

    def close(self) -> None:
        """Disconnect. May be called twice."""
        ended(self._thread, self._finalizer, self._client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
