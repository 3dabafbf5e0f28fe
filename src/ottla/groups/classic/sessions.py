"""Members that were not heard of for too long.

A member is heard of by its heartbeats and commits, and while it waits for an answer. One that is new has no id to send
heartbeats with: it gets five minutes for its first generation, as in Kafka.
"""

from collections.abc import Callable

from ottla.groups.classic.member import ClassicMember
from ottla.ledger import Decision, Timers

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class Sessions:
    """`expired` is asked what becomes of a group (by id) and its member (by id) when a session is over."""

    def __init__(self, timers: Timers, expired: Callable[[str, str], Decision[None]]) -> None:
        self._timers = timers
        self._expired = expired

    def renew(self, group_id: str, member: ClassicMember) -> None:
        self.begin(group_id, member.member_id, member.session_timeout_ms)

    def begin(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._timers.schedule(_session_key(group_id, member_id), timeout_ms, lambda: self._expired(group_id, member_id))

    def end(self, group_id: str, member_id: str) -> None:
        self._timers.cancel(_session_key(group_id, member_id))


def _session_key(group_id: str, member_id: str) -> str:
    """Both ids are any text, so the length of the first says where the second begins."""
    return f"classic session {len(group_id)} {group_id} {member_id}"
