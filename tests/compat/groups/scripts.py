"""What is said to a group, from its first member to its last, right and wrong. Each has a group of its own.

Where a script lets time pass, it does so for well over, or well under, a timeout.
"""

from collections.abc import Callable
from functools import partial

from tests.compat.groups.talk import Talk

Script = Callable[[Talk], None]

BOTH = {"range": b"r", "sticky": b"s"}
# A timeout that is to be over soon, and not before what has to be said is said; and how late it may be.
SHORT_MS, LATE_MS = 2_500, 1_000


def alone(talk: Talk) -> None:
    talk.join("A")
    talk.beat("A", 0)
    talk.sync("A", 0)
    talk.join("A", "A")
    talk.beat("A", 1)
    talk.sync("A", 1, {"A": b"all", "stranger": b"none"})
    talk.sync("A", 1)
    talk.beat("A", 1)
    talk.leave("A", ("A", None))
    talk.beat("A", 1)
    talk.sync("A", 1)
    talk.leave("A", ("A", None))
    talk.join("A", "A")


def strangers(talk: Talk) -> None:
    """Nobody knows the group yet, or the member."""
    talk.join("S", "stranger")
    talk.sync("S", 1)
    talk.beat("S", 1)
    talk.leave("S", ("stranger", None), ("", "instance"), ("", None))
    talk.leave("S", ("stranger", None), version=1)
    talk.pair()
    for generation in (0, 1, 2, -1):
        talk.beat("A", generation)
        talk.sync("A", generation)
    talk.join("S", "stranger")
    talk.join("S", "stranger", instance="instance")
    talk.sync("S", 1)
    talk.beat("S", 1)
    talk.beat("A", 1, instance="instance")
    talk.sync("A", 1, instance="instance")
    talk.leave("S", ("stranger", None), ("", "instance"), ("A", "instance"), ("", None))
    talk.leave("S")
    talk.beat("A", 1)


def wrong_requests(talk: Talk) -> None:
    for version in (0, 4, 7, 9):
        talk.join("A", group="", version=version)
        talk.join("A", "somebody", session_ms=1, version=version)
        talk.join("A", session_ms=2_000_000, version=version)
        talk.join("A", protocol_type="", version=version)
        talk.join("A", protocols={}, version=version)
    talk.sync("A", 1, group="")
    talk.sync("A", 1, protocol=None)
    talk.sync("A", 1, protocol_type=None)
    talk.beat("A", 1, group="")
    talk.leave("A", ("A", None), group="")
    talk.leave("A", ("A", None), group="", version=0)


def one_version(talk: Talk, version: int) -> None:
    """A member by one version of every request, or the last before it."""
    if version >= 4:
        talk.join("A", version=version)
    talk.join("A", "A" if version >= 4 else "", version=version)
    older = min(version, 5)
    names = {} if older >= 5 else {"protocol": None, "protocol_type": None}
    talk.sync("A", 1, {"A": b"all"}, version=older, **names)
    talk.beat("A", 1, version=min(version, 4))
    talk.beat("A", 2, version=min(version, 4))
    talk.leave("A", ("A", None), version=older)
    talk.leave("A", ("A", None), version=older)


def protocols(talk: Talk) -> None:
    talk.enter("A", protocols=BOTH)
    talk.enter("B", protocols={"sticky": b"sb", "range": b"rb"})
    talk.enter("C", protocols={"sticky": b"sc"})
    for name in "ABC":
        talk.hear(name)
    talk.join("D", protocols={"range": b"r"})
    talk.join("D", protocol_type="connect", protocols={"sticky": b""})
    talk.join("A", "A", protocols={"range": b""})
    talk.sync("B", 1, protocol="range")
    talk.sync("B", 1, protocol_type="connect", protocol="sticky")
    talk.begin_sync("B", 1, protocol="sticky")
    talk.sync("A", 1, {"B": b"b"}, protocol="sticky")
    talk.hear("B")


def other_protocol_type(talk: Talk) -> None:
    talk.enter("A", protocol_type="connect", protocols={"sessioned": b"1", "default": b"2"})
    talk.hear("A")
    talk.sync("A", 1, {"A": b"tasks"}, protocol_type="connect", protocol="sessioned")
    talk.join("B")
    talk.join("A", "A")


def joining_again(talk: Talk) -> None:
    talk.enter("A")
    talk.enter("B")
    talk.hear("A")
    talk.hear("B")
    talk.join("A", "A")
    talk.join("B", "B")
    talk.begin_sync("B", 1)
    talk.begin_join("A", "A", protocols={"range": b"new"})
    talk.hear("B")
    talk.beat("B", 1)
    talk.sync("B", 1)
    talk.join("B", "B")
    talk.hear("A")
    talk.begin_sync("B", 2)
    talk.sync("A", 2, {"A": b"2a", "B": b"2b"})
    talk.hear("B")
    talk.join("B", "B")
    talk.sync("B", 2)
    talk.begin_join("A", "A")
    talk.beat("B", 2)
    talk.join("B", "B")
    talk.hear("A")


def leaving(talk: Talk) -> None:
    talk.pair()
    talk.enter("C")
    talk.leave("D", ("C", None))
    talk.hear("C")
    talk.begin_join("B", "B")
    talk.leave("D", ("A", None))
    talk.hear("B")
    talk.begin_sync("B", 2, {"B": b"all"})
    talk.hear("B")
    talk.join("E")
    talk.leave("D", ("E", None), ("E", None), ("B", None))
    talk.beat("B", 2)


def static_members(talk: Talk) -> None:
    talk.static_pair()
    talk.join("B2", instance="b")
    talk.beat("B", 1, instance="b")
    talk.sync("B", 1, instance="b")
    talk.join("B", "B", instance="b")
    talk.leave("B", ("B", "b"))
    talk.beat("B", 1)
    talk.sync("B2", 1, instance="b")
    talk.beat("B2", 1, instance="b")
    talk.beat("A", 1, instance="a")
    talk.join("A2", instance="a")
    talk.sync("A2", 1, instance="a")
    talk.join("A3", instance="a", version=8)
    talk.sync("A3", 1, {"A3": b"ignored"}, instance="a")
    talk.beat("A2", 1, instance="a")
    talk.leave("D", ("", "a"))
    talk.beat("B2", 1, instance="b")
    talk.join("B2", "B2", instance="b")


def static_members_in_rebalances(talk: Talk) -> None:
    talk.static_pair(protocols=BOTH)
    talk.begin_join("A", "A", instance="a", protocols=BOTH)
    talk.begin_join("B", "B", instance="b", protocols=BOTH)
    talk.hear("A")
    talk.hear("B")
    talk.begin_sync("B", 2, instance="b")
    talk.begin_join("B2", instance="b", protocols=BOTH)
    talk.hear("B")
    talk.begin_join("B3", instance="b", protocols=BOTH)
    talk.hear("B2")
    talk.join("A", "A", instance="a", protocols=BOTH)
    talk.hear("B3")
    talk.begin_sync("B3", 3, instance="b")
    talk.sync("A", 3, {"B3": b"all"}, instance="a")
    talk.hear("B3")
    talk.begin_join("B4", instance="b", protocols={"sticky": b"s"})
    talk.beat("A", 3, instance="a")
    talk.join("A", "A", instance="a", protocols=BOTH)
    talk.hear("B4")


def given_id_with_instance(talk: Talk) -> None:
    talk.join("A")
    talk.join("A", "A", instance="a")


def sessions(talk: Talk) -> None:
    """One who is not heard of goes; the one who is stays."""
    talk.enter("A")
    talk.enter("B", session_ms=SHORT_MS)
    talk.hear("A")
    talk.hear("B")
    talk.begin_sync("B", 1)
    talk.sync("A", 1, {"A": b"a", "B": b"b"})
    talk.hear("B")
    talk.beat("B", 1)
    talk.wait(SHORT_MS + LATE_MS)
    talk.beat("B", 1)
    talk.beat("A", 1)
    talk.join("A", "A", session_ms=SHORT_MS)
    talk.wait(SHORT_MS + LATE_MS)
    talk.beat("A", 2)


def given_ids(talk: Talk) -> None:
    """An id that nobody comes back with holds up a rebalance for a session."""
    talk.pair()
    talk.join("C", session_ms=SHORT_MS)
    talk.begin_join("A", "A")
    talk.join("B", "B")
    talk.hear("A")
    talk.join("C", "C")


def slow_members(talk: Talk) -> None:
    """Who does not join in time is out."""
    talk.pair(rebalance_ms=SHORT_MS)
    talk.join("C", rebalance_ms=SHORT_MS, version=3)
    talk.beat("A", 1)
    talk.beat("B", 1)
    talk.sync("C", 2, {"C": b"all"})


def silent_members(talk: Talk) -> None:
    """Who joins and never asks for its part is out."""
    talk.enter("A", rebalance_ms=SHORT_MS)
    talk.enter("B", rebalance_ms=SHORT_MS)
    talk.hear("A")
    talk.hear("B")
    talk.sync("A", 1, {"A": b"all"})
    talk.wait(SHORT_MS + LATE_MS)
    talk.beat("B", 1)
    talk.beat("A", 1)
    talk.join("A", "A")


def silent_leader(talk: Talk) -> None:
    talk.enter("A", rebalance_ms=SHORT_MS)
    talk.enter("B", rebalance_ms=SHORT_MS)
    talk.hear("A")
    talk.hear("B")
    talk.sync("B", 1)
    talk.join("B", "B", rebalance_ms=SHORT_MS)
    talk.beat("A", 1)


def clients_that_hang_up(talk: Talk) -> None:
    talk.enter("A")
    talk.hang_up("A")
    talk.begin_join("A", "A")
    talk.hear("A")
    talk.begin_sync("A", 1)
    talk.hear("A")
    talk.enter("B")
    talk.beat("A", 1)
    talk.hang_up("B")
    talk.join("A", "A")
    talk.sync("A", 2, {"A": b"a", "B": b"b"})
    talk.sync("B", 2)


def full(talk: Talk) -> None:
    """`group.max.size` is 3."""
    talk.enter("A")
    talk.enter("B")
    talk.enter("C")
    talk.join("D", version=3)
    for name in "ABC":
        talk.hear(name)
    talk.join("D")
    talk.begin_sync("B", 1)
    talk.sync("A", 1)
    talk.hear("B")
    talk.join("D", instance="d")
    talk.join("B", "B")


_SCRIPTS: tuple[Script, ...] = (
    alone,
    strangers,
    wrong_requests,
    protocols,
    other_protocol_type,
    joining_again,
    leaving,
    static_members,
    static_members_in_rebalances,
    given_id_with_instance,
    sessions,
    given_ids,
    slow_members,
    silent_members,
    silent_leader,
    clients_that_hang_up,
    full,
)
SCRIPTS: dict[str, Script] = {
    **{script.__name__: script for script in _SCRIPTS},
    **{f"version_{version}": partial(one_version, version=version) for version in range(10)},
}
