"""Members that come, leave, hang, die and come back in any order.

No partition has two owners at a time, as far as the libraries tell their applications; none is left without an owner
once things are quiet; and no committed offset ever goes back. `OTTLA_SEED` repeats the moves of an earlier run and
`OTTLA_SOAK=1` makes more of them.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from tests.compat.clients.groups.conftest import CLASSIC_APIS, CONSUMER_APIS
from tests.compat.clients.groups.contract import Topic
from tests.compat.clients.groups.groups import committed
from tests.compat.clients.groups.hosts import GroupHost, HostedMember, Kind, event_of, until
from tests.compat.clients.groups.sessions import SESSION_MS, set_sessions
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

_MOVES = 120 if os.environ.get("OTTLA_SOAK") else 10
_LONGEST_PAUSE_SECONDS = 0.8
_PARTITIONS = 6
_SLOTS = 4
_POLL_MS = SESSION_MS + 500
_SESSION_NS = SESSION_MS * 1_000_000
_CATCH_UP_NS = 1_000_000_000

pytestmark = pytest.mark.timeout(180 + 5 * _MOVES)
KINDS = (Kind("confluent", assignor="cooperative"), Kind("confluent", assignor="range"), Kind("confluent", "consumer"))


@dataclass(frozen=True)
class Owned:
    """A partition in the hands of one member. `lost`: it was told only afterwards that it had been taken away."""

    member: str
    partition: int
    from_ns: int
    to_ns: int
    lost: bool


class Life:
    """One member from joining to its end; what it was told is in its journal, which outlives it."""

    def __init__(self, kind: Kind, bootstrap: str, group: str, topic: str, journal: Path) -> None:
        self.name = journal.name
        self._journal = journal
        self._host = GroupHost(kind, bootstrap)
        journal.touch()
        self.member: HostedMember = self._host.join(
            group, topic, journal=journal, auto_commit_ms=100, poll_ms=_POLL_MS, session_ms=SESSION_MS
        )
        self.hung_since_ns = 0
        self._hung: list[tuple[int, int]] = []
        self._ended_ns = 0

    @property
    def hangs(self) -> bool:
        return bool(self.hung_since_ns)

    def hung_at(self, at_ns: int) -> bool:
        """Whether it had been hanging for a session then."""
        return any(since_ns + _SESSION_NS <= at_ns <= until_ns for since_ns, until_ns in self._hung)

    def woke_before(self, at_ns: int) -> bool:
        """Whether it came back shortly before, having hung for a session."""
        return any(
            since_ns + _SESSION_NS <= until_ns <= at_ns <= until_ns + _CATCH_UP_NS for since_ns, until_ns in self._hung
        )

    def leave(self) -> None:
        self._host.close()
        self._ended_ns = time.monotonic_ns()

    def die(self) -> None:
        """Who hung before may have been without its partitions since then."""
        self._ended_ns = self.hung_since_ns or time.monotonic_ns()
        self._host.kill()

    def hang(self) -> None:
        self.hung_since_ns = time.monotonic_ns()
        self.member.hang()

    def wake(self) -> None:
        if self.hangs:
            self._hung.append((self.hung_since_ns, time.monotonic_ns()))
        self.hung_since_ns = 0
        self.member.hang(False)

    def owned(self) -> Iterator[Owned]:
        since: dict[int, int] = {}
        for line in self._journal.read_text().splitlines():
            event = event_of(line)
            for partition in event.partitions:
                if event.what == "assigned":
                    since.setdefault(partition, event.at_ns)
                elif partition in since:
                    yield Owned(self.name, partition, since.pop(partition), event.at_ns, event.what == "lost")
        for partition, at_ns in since.items():
            yield Owned(self.name, partition, at_ns, self._ended_ns or time.monotonic_ns(), False)


class OffsetWatch:
    """Asks for the committed offsets all the time."""

    def __init__(self, broker: ServerProcess, group: str, topic: str) -> None:
        self.latest: dict[int, int] = {}
        self.problems: list[str] = []
        self._asked = (broker, group, topic, _PARTITIONS)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        self._over.set()
        self._thread.join()
        assert not self.problems, self.problems[:5]

    def _run(self) -> None:
        while not self._over.wait(0.03):
            found = committed(*self._asked)
            for partition, before in self.latest.items():
                if found.get(partition, -1) < before:
                    self.problems.append(f"partition {partition}: {before}, then {found.get(partition)}")
            self.latest = found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.protocol} {kind.assignor}")
def test_members_come_and_go(
    broker: ServerProcess, topic: str, group: str, kind: Kind, tmp_path: Path, needs: Callable[[ApiKey], None]
) -> None:
    for api in CONSUMER_APIS if kind.protocol == "consumer" else CLASSIC_APIS:
        needs(api)
    seed = int(os.environ.get("OTTLA_SEED") or secrets.randbelow(1 << 32))
    sys.stdout.write(f"OTTLA_SEED={seed}\n")
    dice = random.Random(f"{seed} {kind}")
    log = Topic(broker, topic, _PARTITIONS)
    log.write(5)
    if kind.protocol == "consumer":
        set_sessions(broker.bootstrap, [group], SESSION_MS)
    watch = OffsetWatch(broker, group, topic)
    lives: list[Life] = []
    slots: list[Life | None] = [None] * _SLOTS

    def begin() -> Life:
        lives.append(Life(kind, broker.bootstrap, group, topic, tmp_path / f"member-{len(lives)}"))
        return lives[-1]

    try:
        slots[0] = begin()
        for _ in range(_MOVES):
            number = dice.randrange(_SLOTS)
            slots[number] = _move(slots[number], dice, begin)
            log.write(2)
            time.sleep(dice.uniform(0, _LONGEST_PAUSE_SECONDS))
        slots = [life or (begin() if number == 0 else None) for number, life in enumerate(slots)]
        present = [life for life in slots if life is not None]
        for life in present:
            life.wake()
        log.write(2)
        until(lambda: _owners(present) == list(range(_PARTITIONS)), "an owner for each", lambda: _owners(present))
        until(lambda: committed(broker, group, topic, _PARTITIONS) == dict(enumerate(log.ends)), "all read")
        watch.finish()
        assert not [life.member.error() for life in present if life.member.error()]
    finally:
        for left in slots:
            if left is not None:
                left.die()
    _check_one_owner_at_a_time(lives)


def _move(life: Life | None, dice: random.Random, begin: Callable[[], Life]) -> Life | None:
    if life is None:
        return begin()
    move = dice.choice(["wake", "die"] if life.hangs else ["leave", "hang", "hang", "die"])
    getattr(life, move)()
    return life if move in ("hang", "wake") else None


def _owners(lives: list[Life]) -> list[int]:
    return sorted(partition for life in lives for partition in life.member.assigned())


def _check_one_owner_at_a_time(lives: list[Life]) -> None:
    """Who hangs for as long as a session is not asked any more, and its partitions go to others.

    When it wakes, its library goes through what the broker had said by then: a partition that is to be given back
    and was taken long ago, or one that was assigned, followed by the news that it is lost. Such news is not held
    against anybody; what a member was told while it listened is.
    """
    by_name = {life.name: life for life in lives}
    owned = [one for life in lives for one in life.owned()]
    assert owned
    for first, second in combinations(sorted(owned, key=lambda one: one.from_ns), 2):
        if first.partition != second.partition or first.member == second.member or first.to_ns <= second.from_ns:
            continue
        is_old_news = (
            first.lost
            or by_name[first.member].hung_at(second.from_ns)
            or (second.lost and by_name[second.member].woke_before(second.from_ns))
        )
        assert is_old_news, f"two owners: {first} and {second}"
