"""The contract of the coordination store: what controllers and registries may rely on, whichever store runs.

Nothing here goes beyond what ZooKeeper gives, so that one controller runs on all of them.

The tree
    Nodes have absolute paths (`/topics/orders`) and bytes of data, at most `MAX_NODE_BYTES`. A parent must exist
    before its child and cannot be deleted before it. The root always exists and holds no data.
Versions
    A node starts at version 0 and every write adds 1. `set` and `delete` name the version they saw and fail with
    `BadVersion` when it has moved on; `ANY_VERSION` waives the check. A node that was deleted and created again
    starts at 0 again, so whoever must tell the two apart compares `created_id`: ids of commits only ever grow,
    over the life of the store.
Transactions
    `transact` applies all operations or none, in order, each seeing those before it. The first that does not
    hold raises its error with `operation_index` set. Their data together stays under `MAX_TRANSACTION_BYTES`.
Durability
    A write that was acknowledged survives the death of this process and of the machine. When the answer got lost
    on the way, the call raises `ConnectionLost`: the write happened or it did not, and the caller must look.
Sessions and ephemeral nodes
    An ephemeral node lives as long as the session that created it and cannot have children. When a session has
    expired, its nodes are gone, every call raises `SessionExpired`, and the listeners of `on_session_expired`
    were told; `reopen` starts another session, and every watch gets a RESYNC event.
Reads
    A session sees its own writes. Reads of several nodes (`get_many`, `read_tree`) are not a snapshot: each node
    is as of some moment after the call began. Node versions and transactions are what guards against that.
Watches
    `watch(path, listener)` subscribes to a node and everything below it, whether it exists yet or not. An event
    says what happened to which path, never the data. Events come on the loop, after the commit and in the order
    of commits; a read made after an event sees that change or a newer one. Several changes of one node may come
    as fewer events. RESYNC says that events may have been missed (a connection was lost): read everything again.
    Nothing is promised about whether the event of one's own write comes before or after the write returns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

ANY_VERSION = -1
MAX_NODE_BYTES = 1_000_000
MAX_TRANSACTION_BYTES = 1_000_000


class Node(NamedTuple):
    """A node as it was read."""

    path: str
    data: bytes
    version: int
    created_id: int
    modified_id: int
    is_ephemeral: bool


class EventKind(Enum):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    RESYNC = "resync"


class Event(NamedTuple):
    """What happened to which path; for RESYNC the path is the one that is watched."""

    kind: EventKind
    path: str


Listener = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Check:
    """Holds when the node exists at this version (any, for `ANY_VERSION`)."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    is_ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


Operation = Check | Create | Set | Delete


class StoreError(Exception):
    """Anything a store refuses or fails at. `path` is the node, `operation_index` its place in a transaction."""

    def __init__(self, message: str, path: str = "", operation_index: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.operation_index = operation_index


class NodeExists(StoreError):
    """A create met a node that is there already."""


class NoNode(StoreError):
    """The node, or the parent of the one to create, is not there."""


class BadVersion(StoreError):
    """The node has another version than the one named: someone else wrote in between."""


class NotEmpty(StoreError):
    """The node has children and cannot be deleted."""


class NoChildrenForEphemerals(StoreError):
    """An ephemeral node cannot be a parent."""


class SessionExpired(StoreError):
    """The session is over and its ephemeral nodes are gone; `reopen` starts another one."""


class ConnectionLost(StoreError):
    """The answer did not arrive; a write may have happened or not."""


class InvalidArgument(StoreError, ValueError):
    """A path, a version or data that no store takes."""


class Watch(Protocol):
    """A subscription; after `close` its listener is not called again."""

    def close(self) -> None: ...


class Store(Protocol):
    """One session with the store. See the module's text for what holds."""

    @property
    def session_id(self) -> int:
        """Never used twice."""
        ...

    async def get(self, path: str) -> Node:
        """The node; `NoNode` when it is not there."""
        ...

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """Each node or None, in the order asked for, in as few round trips as the store can do."""
        ...

    async def children(self, path: str) -> list[str]:
        """Names (not paths) of the children, sorted; `NoNode` when the parent is not there."""
        ...

    async def read_tree(self, path: str) -> list[Node]:
        """The node and all below it, parents before children; empty when it is not there."""
        ...

    async def create(self, path: str, data: bytes = b"", *, is_ephemeral: bool = False) -> None: ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Write and return the node's new version."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    async def transact(self, operations: Sequence[Operation]) -> None:
        """All or nothing."""
        ...

    def watch(self, path: str, listener: Listener) -> Watch: ...

    def on_session_expired(self, listener: Callable[[], None]) -> Watch: ...

    async def reopen(self) -> None:
        """Start another session after the last one expired; without effect while it lives."""
        ...

    async def close(self) -> None:
        """End the session: its ephemeral nodes vanish, its watches fall silent."""
        ...


def check_path(path: str) -> None:
    """Raise `InvalidArgument` unless every store can hold a node of this path."""
    if path == "/":
        return
    reason = None
    if not path.startswith("/"):
        reason = "must start with '/'"
    elif path.endswith("/"):
        reason = "must not end with '/'"
    elif any(part in ("", ".", "..") for part in path[1:].split("/")):
        reason = "has an empty part, '.' or '..'"
    elif not path.isprintable():
        reason = "has characters that cannot be printed"
    if reason is not None:
        raise InvalidArgument(f"the path {path!r} {reason}", path)


def check_operations(operations: Sequence[Operation]) -> None:
    """Raise `InvalidArgument` for what no store could apply: bad paths, too much data, writes to the root."""
    total_bytes = 0
    for index, operation in enumerate(operations):
        check_path(operation.path)
        if operation.path == "/" and not isinstance(operation, Check):
            raise InvalidArgument("the root cannot be written", "/", index)
        if isinstance(operation, (Create, Set)):
            data_bytes = len(operation.data)
            total_bytes += data_bytes
            if data_bytes > MAX_NODE_BYTES:
                message = f"data of {operation.path} has {data_bytes} bytes, at most {MAX_NODE_BYTES} are allowed"
                raise InvalidArgument(message, operation.path, index)
    if total_bytes > MAX_TRANSACTION_BYTES:
        raise InvalidArgument(f"a transaction of {total_bytes} bytes; at most {MAX_TRANSACTION_BYTES} are allowed")


def parent_of(path: str) -> str:
    return path[: path.rindex("/")] or "/"
