"""The questions about groups that every client library is asked. `test_groups.py` answers them with each kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.groups.conftest import CLASSIC_APIS, CONSUMER_APIS
from tests.compat.clients.groups.groups import committed, described
from tests.compat.clients.groups.hosts import CallFailed, GroupHost, HostedMember, Kind, until
from tests.compat.clients.groups.sessions import SESSION_MS, set_sessions
from tests.compat.clients.model import CREATE_TIME_MS, Message
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

PARTITIONS = 4
ALL = list(range(PARTITIONS))
NO_OFFSET = re.compile(r"NoOffsetForPartition|_AUTO_OFFSET_RESET|no committed offset", re.IGNORECASE)
TAKEN = re.compile(r"fenced|unreleased|instance ID is still used", re.IGNORECASE)


class Topic:
    """A topic that a test writes to."""

    def __init__(self, broker: ServerProcess, name: str, partitions: int = PARTITIONS) -> None:
        self.name = name
        self.ends = [0] * partitions
        self._client = ConfluentClient(broker.bootstrap)
        self._client.create_topic(name, partitions=partitions)

    def write(self, count: int, timestamp_ms: int | None = None) -> None:
        """`count` records to every partition, a second apart where there is a time; the values are their offsets."""
        for partition, end in enumerate(self.ends):
            messages = [
                Message(b"%d" % offset, timestamp_ms=timestamp_ms and timestamp_ms + 1000 * (offset - end))
                for offset in range(end, end + count)
            ]
            self._client.produce(self.name, partition, messages)
            self.ends[partition] += count

    @property
    def places(self) -> set[tuple[int, int]]:
        return {(partition, offset) for partition, end in enumerate(self.ends) for offset in range(end)}


def until_shared(members: list[HostedMember], sizes: list[int], partitions: int = PARTITIONS) -> None:
    """Wait until every partition has one owner and the owners have as many as expected."""

    def shared() -> bool:
        owned = [member.assigned() for member in members]
        whole = sorted(partition for one in owned for partition in one) == list(range(partitions))
        return whole and sorted(map(len, owned)) == sorted(sizes)

    until(shared, f"shares of {sizes}", lambda: [member.describe() for member in members])


def until_read(members: list[HostedMember], topic: Topic) -> None:
    def missing() -> set[tuple[int, int]]:
        return topic.places - {(record.partition, record.offset) for one in members for record in one.records()}

    until(lambda: not missing(), f"all of {topic.name} read", lambda: sorted(missing())[:5])


def write_to_owners(members: list[HostedMember], topic: Topic, count: int) -> None:
    """Write when all partitions have owners, and wait until each of them has read what it was meant to."""
    topic.write(count)

    def all_read() -> bool:
        return all(
            {(partition, topic.ends[partition] - 1) for partition in member.assigned()}
            <= {(record.partition, record.offset) for record in member.records()}
            for member in members
        )

    until(all_read, "what was written read by the owners")


def complaint(member: HostedMember) -> str:
    """What a member hears that goes on all the same: from its library, or when it commits."""
    try:
        member.commit()
    except CallFailed as refusal:
        return f"{refusal} {member.error()}"
    return member.error()


@pytest.mark.timeout(180)
class GroupContract:
    kind: ClassVar[Kind]
    hears_of_a_double: ClassVar[bool] = True

    @pytest.fixture(autouse=True)
    def _served(self, needs: Callable[[ApiKey], None]) -> None:
        for api in CONSUMER_APIS if self.kind.protocol == "consumer" else CLASSIC_APIS:
            needs(api)

    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, broker: ServerProcess) -> Iterator[GroupHost]:
        host = GroupHost(cls.kind, broker.bootstrap)
        yield host
        host.close()

    def test_members_share_a_topic(self, host: GroupHost, broker: ServerProcess, topic: str, group: str) -> None:
        """One has everything, two have halves, the fifth of five has nothing; who stays takes over from who leaves."""
        log = Topic(broker, topic)
        log.write(5)
        first = host.join(group, topic)
        until_shared([first], [4])
        second = host.join(group, topic)
        until_shared([first, second], [2, 2])
        members = [first, second, *(host.join(group, topic) for _ in range(3))]
        until_shared(members, [0, 1, 1, 1, 1])
        assert described(broker, group, self.kind.protocol).members == 5
        for member in members[:3]:
            member.leave()
        until_shared(members[3:], [2, 2])
        log.write(5)
        until_read(members[3:], log)
        for member in members[3:]:
            member.leave()
        until(lambda: described(broker, group, self.kind.protocol).members == 0, "an empty group")
        assert described(broker, group, self.kind.protocol).state == "Empty"

    def test_a_dead_member_is_replaced(self, host: GroupHost, broker: ServerProcess, topic: str, group: str) -> None:
        log = Topic(broker, topic)
        log.write(3)
        if self.kind.protocol == "consumer":
            set_sessions(broker.bootstrap, [group], SESSION_MS)
        survivor = host.join(group, topic, session_ms=SESSION_MS)
        doomed = GroupHost(self.kind, broker.bootstrap)
        try:
            until_shared([survivor, doomed.join(group, topic, session_ms=SESSION_MS)], [2, 2])
        finally:
            doomed.kill()
        until_shared([survivor], [4])
        log.write(3)
        until_read([survivor], log)
        assert not survivor.error()
        survivor.leave()

    def test_commits(self, host: GroupHost, broker: ServerProcess, topic: str, group: str) -> None:
        """Committed by hand, without waiting, by itself; whoever comes next begins there."""
        log = Topic(broker, topic, 1)
        log.write(10)
        by_hand = host.join(group, topic)
        assert by_hand.committed(0) is None
        until_read([by_hand], log)
        by_hand.commit("sync")
        assert by_hand.committed(0) == 10
        log.write(5)
        until_read([by_hand], log)
        by_hand.commit("async")
        until(lambda: by_hand.committed(0) == 15, "the commit nobody waited for")
        by_hand.leave()

        by_itself = host.join(group, topic, auto_commit_ms=100)
        log.write(5)
        until(lambda: by_itself.records()[-1:] and by_itself.records()[-1].offset == 19, "what is new")
        assert by_itself.records()[0].offset == 15
        until(lambda: committed(broker, group, topic, 1) == {0: 20}, "the commit that nobody asked for")
        by_itself.leave()

        last = host.join(group, topic, reset="none")
        log.write(1)
        until(
            lambda: last.values() == ["20"], "the record after the last commit", lambda: (last.values(), last.error())
        )
        last.leave()

    def test_where_reading_begins(self, host: GroupHost, broker: ServerProcess, topic: str, group: str) -> None:
        log = Topic(broker, topic, 1)
        log.write(10, CREATE_TIME_MS)
        earliest = host.join(group, topic, reset="earliest")
        until(lambda: earliest.values() == [str(offset) for offset in range(10)], "everything from the first on")

        for place, found in ((earliest.offset_at(0, CREATE_TIME_MS + 4500), 5), (2, 2)):
            assert place == found
            before = len(earliest.records())
            earliest.seek(0, found)
            wanted = [str(offset) for offset in range(found, 10)]
            until(lambda before=before, wanted=wanted: earliest.values()[before:] == wanted, f"all from {found} on")  # type: ignore[misc]
        assert earliest.offset_at(0, CREATE_TIME_MS + 86_400_000) is None
        earliest.leave()

        latest = host.join(f"{group}-latest", topic, reset="latest")
        until(lambda: latest.assigned() == [0], "an assignment")

        def something_came() -> bool:
            log.write(1)
            return bool(latest.records())

        until(something_came, "a record that was written later")
        assert latest.records()[0].offset >= 10
        latest.leave()

        nowhere = host.join(f"{group}-none", topic, reset="none")
        until(nowhere.error, "a complaint that there is no offset")
        assert NO_OFFSET.search(nowhere.error()), nowhere.error()
        assert nowhere.records() == []
        nowhere.leave()

    def test_static_members(self, host: GroupHost, broker: ServerProcess, topic: str, group: str) -> None:
        """A member with a name of its own comes back to its partitions, and nobody else notices."""
        log = Topic(broker, topic)
        log.write(2)
        stays = host.join(group, topic, instance="one")
        goes = host.join(group, topic, instance="two")
        until_shared([stays, goes], [2, 2])
        owned, noticed = goes.assigned(), len(stays.events())
        goes.leave()
        back = host.join(group, topic, instance="two")
        until(lambda: back.assigned() == owned, f"{owned} again", lambda: (back.assigned(), back.error()))
        log.write(2)
        until_read([stays, back], log)
        assert len(stays.events()) == noticed
        assert not stays.error()
        if self.hears_of_a_double:
            self._check_that_a_double_is_sent_away(host, group, topic, back)
        for member in (stays, back):
            member.leave()

    def _check_that_a_double_is_sent_away(self, host: GroupHost, group: str, topic: str, back: HostedMember) -> None:
        double = host.join(group, topic, instance="two")
        unwanted = double if self.kind.protocol == "consumer" else back
        until(lambda: TAKEN.search(complaint(unwanted)), "one of two sent away", lambda: complaint(unwanted))
        double.leave()

    def test_a_pattern(self, host: GroupHost, broker: ServerProcess, topic: str, group: str) -> None:
        logs = [Topic(broker, f"{topic}-{name}", 1) for name in ("fits-a", "fits-b", "other")]
        for number, log in enumerate(logs, start=1):
            log.write(number)
        member = host.join(group, f"^{topic}-fits.*")
        until(lambda: sorted(member.values()) == ["0", "0", "1"], "the topics that fit", member.values)
        member.leave()
