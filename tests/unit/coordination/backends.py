"""The stores that the contract is tested on, each behind the same few calls."""

from pathlib import Path
from typing import Protocol

from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import Store


class Backend(Protocol):
    async def session(self) -> Store:
        """One more session on the same tree, empty at first."""
        ...

    async def expire(self, session: Store) -> None:
        """End a session as the service does when it hears nothing from it."""
        ...

    async def close(self) -> None: ...


class EmbeddedBackend:
    def __init__(self, directory: Path) -> None:
        self._path = str(directory / "store.sqlite3")
        self._sessions: list[EmbeddedStore] = []

    async def session(self) -> Store:
        opened = await self._sessions[0].new_session() if self._sessions else await EmbeddedStore.open(self._path)
        self._sessions.append(opened)
        return opened

    async def expire(self, session: Store) -> None:
        assert isinstance(session, EmbeddedStore)
        await session.expire()

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        self._sessions = []
