"""The timers of members: who is silent, or takes too long, is put out of its group.

| timer      | runs                                                  | ended by                                     |
|------------|-------------------------------------------------------|----------------------------------------------|
| session    | from each heartbeat                                   | the next heartbeat                           |
| revocation | while the member is to give partitions back           | the member's word that it did                |
| join       | from when a classic member is told to join again      | its JoinGroup                                |
| sync       | from the answer to a classic member's JoinGroup       | its SyncGroup                                |
"""

from collections.abc import Callable

from ottla.groups.consumer.member import ConsumerMember
from ottla.ledger.machine import Decision, Timers

SESSION, REVOCATION, JOIN, SYNC = "session", "revocation", "join", "sync"
_ALL = (SESSION, REVOCATION, JOIN, SYNC)

Expired = Callable[[str, str, str], Decision[None]]
"""Puts a member out of a group, for a reason; nothing happens if it is gone already."""

TookTooLong = Callable[[str, str, int], Decision[None]]
"""Puts a member out of a group if it is still in this epoch."""


class Sessions:
    def __init__(self, timers: Timers, expired: Expired, took_too_long: TookTooLong) -> None:
        self._timers = timers
        self._expired = expired
        self._took_too_long = took_too_long

    def alive(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._expire_after(SESSION, group_id, member_id, timeout_ms, "its session ended")

    def revoking(self, group_id: str, member: ConsumerMember) -> None:
        member_id, epoch = member.member_id, member.member_epoch
        self._timers.schedule(
            _key(REVOCATION, group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self._took_too_long(group_id, member_id, epoch),
        )

    def not_revoking(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(_key(REVOCATION, group_id, member_id))

    def join_due(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Begins once; being told again does not give more time."""
        if not self._timers.is_scheduled(_key(JOIN, group_id, member_id)):
            self._expire_after(JOIN, group_id, member_id, timeout_ms, "it did not join again in time")

    def joined(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(_key(JOIN, group_id, member_id))

    def sync_due(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._expire_after(SYNC, group_id, member_id, timeout_ms, "it did not ask for its assignment in time")

    def synced(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(_key(SYNC, group_id, member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        for kind in _ALL:
            self._timers.cancel(_key(kind, group_id, member_id))

    def _expire_after(self, kind: str, group_id: str, member_id: str, timeout_ms: int, reason: str) -> None:
        self._timers.schedule(
            _key(kind, group_id, member_id), timeout_ms, lambda: self._expired(group_id, member_id, reason)
        )


def _key(kind: str, group_id: str, member_id: str) -> str:
    """Both ids are any text, so the length of the first tells where the second begins."""
    return f"consumer {kind} {len(group_id)} {group_id} {member_id}"
