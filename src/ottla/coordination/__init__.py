"""Where the cluster's state lives: one small interface and the stores behind it.

`store` is the contract; `embedded` keeps it in the data directory of one machine.
"""

from ottla.coordination.store import (
    ANY_VERSION,
    MAX_NODE_BYTES,
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    Event,
    EventKind,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    Set,
    Store,
    StoreError,
    Watch,
)

__all__ = [
    "ANY_VERSION",
    "MAX_NODE_BYTES",
    "BadVersion",
    "Check",
    "ConnectionLost",
    "Create",
    "Delete",
    "Event",
    "EventKind",
    "NoNode",
    "Node",
    "NodeExists",
    "NotEmpty",
    "Operation",
    "SessionExpired",
    "Set",
    "Store",
    "StoreError",
    "Watch",
]
