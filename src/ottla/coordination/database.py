"""The tree of nodes in one sqlite file: plain blocking calls, made by one thread.

A commit returns once it is on the device (write-ahead log, `synchronous=FULL`), so what was acknowledged is there
after a kill and after a power cut; a file that need not be durable, in tests, survives a kill only. The file is locked
while it is open: a second process gets `StoreLocked`.

Ephemeral nodes carry the id of their session. No session outlives the process, so opening the file deletes them.
Every change counts up one id for the whole store, kept in the file; sessions take their ids from it too.
"""

import sqlite3
from collections.abc import Sequence

from ottla.coordination.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    Event,
    EventKind,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Set,
    StoreError,
    parent_of,
)

NO_SESSION = 0

_SCHEMA_VERSION = 1
_SCHEMA = f"""
BEGIN;
CREATE TABLE nodes (
    path TEXT NOT NULL PRIMARY KEY,
    parent TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_id INTEGER NOT NULL,
    modified_id INTEGER NOT NULL,
    session_id INTEGER NOT NULL
);
CREATE INDEX nodes_by_parent ON nodes (parent);
CREATE INDEX nodes_by_session ON nodes (session_id) WHERE session_id <> {NO_SESSION};
CREATE TABLE counters (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO counters VALUES ('last_id', 0);
INSERT INTO nodes VALUES ('/', '', x'', 0, 0, 0, {NO_SESSION});
PRAGMA user_version = {_SCHEMA_VERSION};
COMMIT;
"""
_COLUMNS = "path, data, version, created_id, modified_id, session_id"


class StoreLocked(StoreError):
    """Another process has the file open."""


class Database:
    """The nodes of one file. Not safe to share between threads; writes happen between `begin` and `commit`."""

    def __init__(self, path: str, *, is_durable: bool = True) -> None:
        self._path = path
        self._synchronous = "FULL" if is_durable else "OFF"
        try:
            # The connection is opened on the store's thread and used there alone.
            self._connection = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be opened: {error}") from error
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        execute = self._connection.execute
        try:
            execute("PRAGMA locking_mode = EXCLUSIVE")
            execute("PRAGMA journal_mode = WAL")
            execute(f"PRAGMA synchronous = {self._synchronous}")
            schema_version = execute("PRAGMA user_version").fetchone()[0]
            if schema_version == 0:
                self._connection.executescript(_SCHEMA)
            elif schema_version != _SCHEMA_VERSION:
                message = f"{self._path} has layout {schema_version}; this release knows layout {_SCHEMA_VERSION}"
                raise StoreError(message)
            else:
                self._check()
            execute("BEGIN IMMEDIATE")
            execute("DELETE FROM nodes WHERE session_id <> ?", (NO_SESSION,))
            execute("COMMIT")
            counter = execute("SELECT value FROM counters WHERE name = 'last_id'").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreLocked(f"{self._path} is in use by another process") from error
            raise StoreError(f"{self._path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error
        if counter is None or not isinstance(counter[0], int):
            raise self._damaged("the counter of changes is gone")
        self._last_id: int = counter[0]
        self._stored_id = self._last_id

    def _check(self) -> None:
        """Refuse a file with broken pages now: later it would fail in the middle of something."""
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(found)

    def _damaged(self, reason: object) -> StoreError:
        return StoreError(
            f"{self._path} is damaged or no store of this kind: {reason}. It names the topics and their settings; the "
            f"records are not in it. Put back a copy of it, or move it away to begin with no topics"
        )

    def close(self) -> None:
        self._connection.close()

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Return once everything since `begin` is on the device."""
        if self._last_id != self._stored_id:
            self._connection.execute("UPDATE counters SET value = ? WHERE name = 'last_id'", (self._last_id,))
        self._connection.execute("COMMIT")
        self._stored_id = self._last_id

    def rollback(self) -> None:
        """Undo everything since `begin`. Ids that were given out stay used."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def new_session(self) -> int:
        self._last_id += 1
        return self._last_id

    def find(self, path: str) -> Node | None:
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM nodes WHERE path = ?", (path,)).fetchone()
        return None if row is None else _node(row)

    def children(self, path: str) -> list[str]:
        self._require(path)
        start = len(path) if path == "/" else len(path) + 1
        rows = self._connection.execute("SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,))
        return [row[0][start:] for row in rows]

    def read_tree(self, path: str) -> list[Node]:
        prefix = path if path == "/" else path + "/"
        # '0' follows '/' in the order of bytes, so this range is exactly what begins with the prefix.
        after = prefix[:-1] + "0"
        query = f"SELECT {_COLUMNS} FROM nodes WHERE path = ? OR (path > ? AND path < ?) ORDER BY path"
        return [_node(row) for row in self._connection.execute(query, (path, prefix, after))]

    def transact(self, session_id: int, operations: Sequence[Operation]) -> list[Event]:
        """Apply all operations or none; inside `begin` and `commit`. Gives the events of what changed."""
        self._connection.execute("SAVEPOINT operations")
        self._last_id += 1
        events: list[Event] = []
        try:
            for index, operation in enumerate(operations):
                try:
                    event = self._apply(session_id, operation)
                except StoreError as error:
                    error.operation_index = index
                    raise
                if event is not None:
                    events.append(event)
        except BaseException:
            self._connection.execute("ROLLBACK TO operations")
            raise
        finally:
            self._connection.execute("RELEASE operations")
        return events

    def end_session(self, session_id: int) -> list[Event]:
        """Delete its ephemeral nodes; inside `begin` and `commit`."""
        query = "SELECT path FROM nodes WHERE session_id = ? ORDER BY path"
        paths = [row[0] for row in self._connection.execute(query, (session_id,))]
        return self.transact(session_id, [Delete(path) for path in paths])

    def _apply(self, session_id: int, operation: Operation) -> Event | None:
        path = operation.path
        if isinstance(operation, Check):
            self._require(path, operation.version)
            return None
        if isinstance(operation, Create):
            self._create(operation, session_id)
            return Event(EventKind.CREATED, path)
        if isinstance(operation, Set):
            self._require(path, operation.version)
            self._connection.execute(
                "UPDATE nodes SET data = ?, version = version + 1, modified_id = ? WHERE path = ?",
                (operation.data, self._last_id, path),
            )
            return Event(EventKind.CHANGED, path)
        self._require(path, operation.version)
        if self._connection.execute("SELECT 1 FROM nodes WHERE parent = ? LIMIT 1", (path,)).fetchone() is not None:
            raise NotEmpty(f"{path} has children and cannot be deleted", path)
        self._connection.execute("DELETE FROM nodes WHERE path = ?", (path,))
        return Event(EventKind.DELETED, path)

    def _create(self, operation: Create, session_id: int) -> None:
        path = operation.path
        parent = parent_of(path)
        row = self._connection.execute("SELECT session_id FROM nodes WHERE path = ?", (parent,)).fetchone()
        if row is None:
            raise NoNode(f"the parent of {path} does not exist", path)
        if row[0] != NO_SESSION:
            raise NoChildrenForEphemerals(f"the parent of {path} is ephemeral and cannot have children", path)
        owner = session_id if operation.is_ephemeral else NO_SESSION
        try:
            self._connection.execute(
                "INSERT INTO nodes (path, parent, data, version, created_id, modified_id, session_id) "
                "VALUES (?, ?, ?, 0, ?, ?, ?)",
                (path, parent, operation.data, self._last_id, self._last_id, owner),
            )
        except sqlite3.IntegrityError as error:
            raise NodeExists(f"{path} exists already", path) from error

    def _require(self, path: str, version: int = ANY_VERSION) -> None:
        row = self._connection.execute("SELECT version FROM nodes WHERE path = ?", (path,)).fetchone()
        if row is None:
            raise NoNode(f"{path} does not exist", path)
        if version not in (ANY_VERSION, row[0]):
            raise BadVersion(f"{path} has version {row[0]}, version {version} was expected", path)


def _node(row: tuple[str, bytes, int, int, int, int]) -> Node:
    path, data, version, created_id, modified_id, session_id = row
    return Node(path, data, version, created_id, modified_id, session_id != NO_SESSION)
