"""How long a group waits for a member it does not hear of.

Members that are only slow, on a machine that is busy, must not be given up: sessions are long unless a test is about
their end.
"""

from collections.abc import Iterable

from tests.waiting import tries

from ottla import Admin
from ottla.client.admin import ConfigResource

SESSION_MS = 2_000
QUIET_MS = 20_000
_SETTING = "consumer.session.timeout.ms"


def set_sessions(address: str, groups: Iterable[str], session_ms: int) -> None:
    """Of groups of the next generation, whose sessions the broker decides on."""
    resources = [ConfigResource.group(group) for group in groups]
    with Admin(address) as admin:
        admin.alter_configs({one: {_SETTING: session_ms} for one in resources}).raise_for_errors()
        for _ in tries(pause_seconds=0.02):
            found = admin.describe_configs(resources, names=[_SETTING]).raise_for_errors()
            if all(entries[_SETTING].value == str(session_ms) for entries in found.values()):
                return
    raise AssertionError(f"the broker did not hear of it: {found}")
