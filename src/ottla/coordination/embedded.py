"""A coordination store inside the process, durable in one sqlite file: the cluster of one machine needs no other.

    loop: get, set, transact ...  -> queue -> thread: sqlite -> one commit for all that waited -> loop: events, answers

One thread makes all sqlite calls. It takes everything that waits in its queue, applies each piece of work on its
own (one that is refused undoes only itself), commits once, and hands the results to the loop in order: first the
events of a commit, then its answers. So an answer means that the commit is on the device, and no listener hears of
one that is not.

Several sessions may share one file through `new_session`, each with ephemeral nodes and watches of its own: a
cluster of brokers in one process. The file closes with the last of them.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla.coordination.database import Database
from ottla.coordination.store import (
    ANY_VERSION,
    Create,
    Delete,
    Event,
    EventKind,
    Listener,
    Node,
    NoNode,
    Operation,
    SessionExpired,
    Set,
    StoreError,
    Watch,
    check_operations,
    check_path,
)

Result = TypeVar("Result")
Work = Callable[[Database, list[Event]], Any]


class _Job:
    __slots__ = ("error", "events", "future", "result", "work")

    def __init__(self, work: Work, future: "asyncio.Future[Any]") -> None:
        self.work = work
        self.future = future
        self.events: list[Event] = []
        self.result: Any = None
        self.error: BaseException | None = None


class _Engine:
    """The thread with the file, and the sessions that share it. All but `_run` belongs to the loop's thread."""

    def __init__(self, path: str, is_durable: bool) -> None:
        self.path = path
        self._is_durable = is_durable
        self.sessions: list[EmbeddedStore] = []
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="ottla-store", daemon=True)

    async def open(self) -> None:
        self._thread.start()
        await self._opened

    async def submit(self, work: Callable[[Database, list[Event]], Result]) -> Result:
        future: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put(_Job(work, future))
        return await future

    async def close(self) -> None:
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        try:
            database = Database(self.path, is_durable=self._is_durable)
        except BaseException as error:
            self._loop.call_soon_threadsafe(_settle, self._opened, None, error)
            return
        self._loop.call_soon_threadsafe(_settle, self._opened, None, None)
        try:
            while (jobs := self._wait_for_jobs()) is not None:
                self._commit(database, jobs)
                self._loop.call_soon_threadsafe(self._deliver, jobs)
        finally:
            database.close()

    def _wait_for_jobs(self) -> list[_Job] | None:
        """Everything that waits, at least one; None at the end."""
        first = self._jobs.get()
        if first is None:
            return None
        jobs = [first]
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is None:
                self._jobs.put(None)
                break
            jobs.append(job)
        return jobs

    @staticmethod
    def _commit(database: Database, jobs: list[_Job]) -> None:
        try:
            database.begin()
            for job in jobs:
                try:
                    job.result = job.work(database, job.events)
                except sqlite3.Error:
                    raise
                except Exception as error:
                    job.error = error
            database.commit()
        except sqlite3.Error as error:
            for job in jobs:
                job.events = []
                job.error = StoreError(f"the store failed to commit: {error}")
            database.rollback()

    def _deliver(self, jobs: list[_Job]) -> None:
        for job in jobs:
            for event in job.events:
                for session in tuple(self.sessions):
                    session.dispatch(event)
            _settle(job.future, job.result, job.error)


def _settle(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class _Subscription:
    """One watch of a path and all below it."""

    __slots__ = ("_forget", "_listener", "_prefix", "path")

    def __init__(self, path: str, listener: Listener, forget: Callable[["_Subscription"], None]) -> None:
        self.path = path
        self._prefix = path if path == "/" else path + "/"
        self._listener = listener
        self._forget = forget

    def covers(self, path: str) -> bool:
        return path == self.path or path.startswith(self._prefix)

    def tell(self, event: Event) -> None:
        try:
            self._listener(event)
        except Exception as error:
            _report(f"a watch on {self.path} failed", error)

    def close(self) -> None:
        self._forget(self)


class _ExpiryListener:
    __slots__ = ("_forget", "_listener")

    def __init__(self, listener: Callable[[], None], forget: Callable[["_ExpiryListener"], None]) -> None:
        self._listener = listener
        self._forget = forget

    def tell(self) -> None:
        try:
            self._listener()
        except Exception as error:
            _report("a listener of session expiry failed", error)

    def close(self) -> None:
        self._forget(self)


def _report(message: str, error: Exception) -> None:
    """A listener's failure is its own: the others still hear, and the loop's handler logs it."""
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


class EmbeddedStore:
    """One session on a sqlite file. Implements `Store`; open it with `EmbeddedStore.open(path)`."""

    def __init__(self, engine: _Engine, session_id: int) -> None:
        self._engine = engine
        self._session_id = session_id
        self._is_expired = False
        self._is_closed = False
        self._subscriptions: dict[_Subscription, None] = {}
        self._expiry_listeners: dict[_ExpiryListener, None] = {}
        engine.sessions.append(self)

    @classmethod
    async def open(cls, path: str, *, is_durable: bool = True) -> "EmbeddedStore":
        """Open or create the file; its directory must exist. Without durability, a power cut may take commits back."""
        engine = _Engine(path, is_durable)
        await engine.open()
        return cls(engine, await engine.submit(lambda database, events: database.new_session()))

    async def new_session(self) -> "EmbeddedStore":
        """Another session on the same file, as if another broker had connected."""
        return EmbeddedStore(self._engine, await self._engine.submit(lambda database, events: database.new_session()))

    @property
    def session_id(self) -> int:
        return self._session_id

    async def get(self, path: str) -> Node:
        node = (await self.get_many([path]))[0]
        if node is None:
            raise NoNode(f"{path} does not exist", path)
        return node

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        wanted = tuple(paths)
        return await self._submit(lambda database, events: [database.find(path) for path in wanted])

    async def children(self, path: str) -> list[str]:
        check_path(path)
        return await self._submit(lambda database, events: database.children(path))

    async def read_tree(self, path: str) -> list[Node]:
        check_path(path)
        return await self._submit(lambda database, events: database.read_tree(path))

    async def create(self, path: str, data: bytes = b"", *, is_ephemeral: bool = False) -> None:
        await self.transact([Create(path, data, is_ephemeral)])

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        operation = Set(path, data, version)
        check_operations([operation])
        session_id = self._session_id

        def work(database: Database, events: list[Event]) -> int:
            events.extend(database.transact(session_id, [operation]))
            node = database.find(path)
            assert node is not None, "a node that was just written is there"
            return node.version

        return await self._submit(work)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.transact([Delete(path, version)])

    async def transact(self, operations: Sequence[Operation]) -> None:
        check_operations(operations)
        session_id, wanted = self._session_id, tuple(operations)
        await self._submit(lambda database, events: events.extend(database.transact(session_id, wanted)))

    def watch(self, path: str, listener: Listener) -> Watch:
        check_path(path)
        subscription = _Subscription(path, listener, lambda gone: self._subscriptions.pop(gone, None))
        self._subscriptions[subscription] = None
        return subscription

    def on_session_expired(self, listener: Callable[[], None]) -> Watch:
        entry = _ExpiryListener(listener, lambda gone: self._expiry_listeners.pop(gone, None))
        self._expiry_listeners[entry] = None
        return entry

    async def expire(self) -> None:
        """End the session as a coordination service does that has not heard from it for too long."""
        self._is_expired = True
        await self._end_session()
        for entry in tuple(self._expiry_listeners):
            entry.tell()

    async def reopen(self) -> None:
        if not self._is_expired or self._is_closed:
            return
        self._session_id = await self._engine.submit(lambda database, events: database.new_session())
        self._is_expired = False
        for subscription in tuple(self._subscriptions):
            subscription.tell(Event(EventKind.RESYNC, subscription.path))

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._subscriptions.clear()
        self._expiry_listeners.clear()
        if not self._is_expired:
            await self._end_session()
        self._engine.sessions.remove(self)
        if not self._engine.sessions:
            await self._engine.close()

    def dispatch(self, event: Event) -> None:
        """Called by the engine, on the loop, in the order of commits."""
        if self._is_expired:
            return
        for subscription in tuple(self._subscriptions):
            if subscription.covers(event.path) and subscription in self._subscriptions:
                subscription.tell(event)

    async def _end_session(self) -> None:
        session_id = self._session_id
        await self._engine.submit(lambda database, events: events.extend(database.end_session(session_id)))

    async def _submit(self, work: Callable[[Database, list[Event]], Result]) -> Result:
        if self._is_expired or self._is_closed:
            raise SessionExpired(f"session {self._session_id} is over")
        return await self._engine.submit(work)
