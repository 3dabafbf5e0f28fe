"""One member of a classic group."""

from collections.abc import Container
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.runtime.promise import Promise

Protocols = tuple[tuple[str, bytes], ...]
"""The names of the protocols that a member knows with what it says in each, in the order in which it prefers them."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class ClassicMember:
    """`is_new` until its first generation: it has no id to send heartbeats with, and is given up if that takes long.

    More than one request may wait for the same answer, when a client lost its connection and came back; all of them
    get it. A member still counts as one that has joined when nobody is left to hear it.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    waiting_joins: list[Promise[JoinGroupResponse]] = field(default_factory=list)
    waiting_syncs: list[Promise[SyncGroupResponse]] = field(default_factory=list)

    @property
    def is_joining(self) -> bool:
        return bool(self.waiting_joins)

    @property
    def is_syncing(self) -> bool:
        return bool(self.waiting_syncs)

    @property
    def is_heard_of(self) -> bool:
        """Whether it waits for an answer, so that no heartbeat can be expected of it."""
        return not self.is_new and (self.is_joining or self.is_syncing)

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """What it says in a protocol; nothing in one that it does not know."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        """The one of the candidates that it prefers; at least one is known to all members."""
        return next(name for name, _ in self.protocols if name in candidates)


def protocols_of(request: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def one_more(waiting: list[Promise[Answer]], promise: Promise[Answer]) -> list[Promise[Answer]]:
    """Those who wait, without those who have given up."""
    return [*(other for other in waiting if not other.done()), promise]
