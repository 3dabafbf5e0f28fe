"""What PostgreSQL's errors mean to a connector: whether waiting helps, and if it does not, what does."""

from __future__ import annotations

from ottla.capture.changes import HOW_TO_BEGIN_ANEW, CaptureError, SourceUnavailable

_OBJECT_IN_USE = "55006"
_LIMIT_REACHED = "53400"
# Connections that break, conflicts, resources that are short, a server that shuts down or starts.
_PASSING_CLASSES = ("08", "40", "53", "57")

_REMEDIES = {
    "42501": "grant the user what docs/CAPTURE.md lists under rights, or create publication and slot as another user",
    _LIMIT_REACHED: "drop replication slots that nobody needs, or raise max_replication_slots and restart the server",
    "42704": f"something that capture needs was dropped. {HOW_TO_BEGIN_ANEW}",
    "42P01": "create the table first, or correct its name",
    "25006": "name the primary server, since this one only reads",
    "58P01": f"the server no longer has its log from the position on. {HOW_TO_BEGIN_ANEW}",
}
_OTHERWISE = "correct that, then start again"
NEEDS_LOGICAL = "set `wal_level = logical` in postgresql.conf, and restart the server"


def refusal(what: str, state: str | None, reason: str, remedy: str | None = None) -> CaptureError:
    """The error for one of the server's. `state` is its SQLSTATE, None where there was no answer at all; `remedy` is
    what helps here, where that is known better than from the state."""
    is_passing = state is None or state == _OBJECT_IN_USE or state.startswith(_PASSING_CLASSES)
    if is_passing and state != _LIMIT_REACHED:
        return SourceUnavailable(f"{what}: {reason}")
    return CaptureError(f"{what}: {reason}; {remedy or _REMEDIES.get(state or '', _OTHERWISE)}")
