"""Members of one group that speak the protocol and do nothing else: how long it takes until all of them agree.

Every member has a connection of its own and a heartbeat of `heartbeat_ms`, the same on both brokers. First `members` of
them form a group. Then, `times` times each, one more joins, and one dies without a word. What is timed is from there
until every member that lives has a share of the last round, and every partition has one owner.
"""

from __future__ import annotations

import asyncio
import statistics
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from bench.job import Figures, Specification, job_main
from bench.wire import CLIENT_ID, LOOPBACK, RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.message import Request
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, NEW_HEARTBEAT_VERSION = 9, 5, 4, 1
_PROTOCOL = b"\0\1"
_GIVE_UP_SECONDS = 60.0
_REBALANCE_MS = 30_000
_AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)


class Member(ABC):
    """What it owns, and in which round it was told so; `-1` while it is between two rounds."""

    def __init__(self, group: Group) -> None:
        self.round = -1
        self.owned: frozenset[int] = frozenset()
        self._group = group
        self._task = asyncio.get_running_loop().create_task(self._live())

    def die(self) -> None:
        self._task.cancel()

    def check(self) -> None:
        """Raise what ended it, if something did."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def _live(self) -> None:
        reader, self._writer = await asyncio.open_connection(LOOPBACK, self._group.port)
        self._reader = reader
        try:
            await self.run()
        finally:
            self._writer.close()

    async def ask(self, request: Request, version: int) -> Any:
        self._writer.write(encode_request(request, version, 1, CLIENT_ID))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return decode_response(type(request), version, await self._reader.readexactly(size))[1]

    def agree(self, number: int, owned: Sequence[int]) -> None:
        self.round, self.owned = number, frozenset(owned)
        self._group.changed.set()

    @abstractmethod
    async def run(self) -> None: ...


class ClassicMember(Member):
    async def run(self) -> None:
        member_id = ""
        metadata = _PROTOCOL + ConsumerProtocolSubscription(topics=[self._group.topic]).encode(1)
        while True:
            self.round = -1
            joined = await self._join(member_id, metadata)
            member_id = joined.member_id
            if joined.error_code != ErrorCode.NONE:
                if joined.error_code not in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS):
                    member_id = ""
                continue
            if await self._sync(joined):
                await self._beat(joined)

    async def _join(self, member_id: str, metadata: bytes) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group.name,
            session_timeout_ms=self._group.session_ms,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = await self.ask(request, JOIN_VERSION)
        assert isinstance(answer, JoinGroupResponse)
        return answer

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        request = SyncGroupRequest(
            group_id=self._group.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
        )
        if joined.leader == joined.member_id and not joined.skip_assignment:
            shares = self._group.shares(len(joined.members))
            request.assignments = [
                SyncGroupRequestAssignment(member_id=member.member_id, assignment=self._assignment(share))
                for member, share in zip(joined.members, shares, strict=True)
            ]
        answer = await self.ask(request, SYNC_VERSION)
        if answer.error_code != ErrorCode.NONE:
            return False
        assigned = ConsumerProtocolAssignment.decode(answer.assignment[len(_PROTOCOL) :], 1).assigned_partitions
        self.agree(joined.generation_id, [index for topic in assigned for index in topic.partitions])
        return True

    async def _beat(self, joined: JoinGroupResponse) -> None:
        beat = HeartbeatRequest(
            group_id=self._group.name, generation_id=joined.generation_id, member_id=joined.member_id
        )
        while True:
            await asyncio.sleep(self._group.heartbeat_seconds)
            code = (await self.ask(beat, HEARTBEAT_VERSION)).error_code
            if code in _AGAIN:
                return
            if code != ErrorCode.NONE:
                raise RefusedError(f"a heartbeat was answered with {ErrorCode(code).name}")

    def _assignment(self, share: list[int]) -> bytes:
        given = [TopicPartition(topic=self._group.topic, partitions=share)]
        return _PROTOCOL + ConsumerProtocolAssignment(assigned_partitions=given).encode(1)


class NewMember(Member):
    """It takes what it is given at once, and says so with its next heartbeat."""

    async def run(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id=self._group.new_member_id(),
            rebalance_timeout_ms=_REBALANCE_MS,
            subscribed_topic_names=[self._group.topic],
            topic_partitions=[],
        )
        owned: list[int] = []
        while True:
            answer = await self.ask(request, NEW_HEARTBEAT_VERSION)
            if answer.error_code != ErrorCode.NONE:
                raise RefusedError(f"a heartbeat was answered with {ErrorCode(answer.error_code).name}")
            request.member_epoch = answer.member_epoch
            request.rebalance_timeout_ms, request.subscribed_topic_names = -1, None
            request.topic_partitions = None
            if answer.assignment is not None:
                given = answer.assignment.topic_partitions
                owned = [index for topic in given for index in topic.partitions]
                request.topic_partitions = [
                    TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions) for topic in given
                ]
            self.agree(answer.member_epoch, owned)
            if request.topic_partitions is None:
                await asyncio.sleep(self._group.heartbeat_seconds)


class Group:
    def __init__(self, specification: Specification) -> None:
        self.name = str(specification["group"])
        self.topic = str(specification["topic"])
        self.port = int(specification["port"])
        self.partitions = int(specification["partitions"])
        self.session_ms = int(specification["session_ms"])
        self.heartbeat_seconds = int(specification["heartbeat_ms"]) / 1000
        self.changed = asyncio.Event()
        self.members: list[Member] = []
        self._kind = NewMember if specification["protocol"] == "consumer" else ClassicMember
        self._numbers = 0

    def new_member_id(self) -> str:
        self._numbers += 1
        return f"{self.name}-{self._numbers}"

    def shares(self, count: int) -> list[list[int]]:
        return [list(range(number, self.partitions, count)) for number in range(count)]

    def join(self) -> None:
        self.members.append(self._kind(self))

    def die(self) -> None:
        """The one that came first: in a classic group it is the leader."""
        self.members.pop(0).die()

    async def agreed(self) -> float:
        """Seconds until all members are in one round and share all partitions."""
        started = time.perf_counter()
        while not self._is_stable():
            for member in self.members:
                member.check()
            if time.perf_counter() - started > _GIVE_UP_SECONDS:
                raise RefusedError(f"{len(self.members)} members do not agree within {_GIVE_UP_SECONDS:.0f} s")
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), 1.0)
            except TimeoutError:
                continue
        return time.perf_counter() - started

    def _is_stable(self) -> bool:
        rounds = {member.round for member in self.members}
        owned = [index for member in self.members for index in member.owned]
        shared = all(member.owned for member in self.members) and sorted(owned) == list(range(self.partitions))
        return shared and len(rounds) == 1 and -1 not in rounds


async def measure(specification: Specification) -> Figures:
    group = Group(specification)
    for _ in range(int(specification["members"]) - 1):
        group.join()
    formed = await group.agreed()
    joined: list[float] = []
    died: list[float] = []
    for _ in range(int(specification["times"])):
        group.join()
        joined.append(await group.agreed())
        group.die()
        died.append(await group.agreed())
    for member in group.members:
        member.die()
    await asyncio.sleep(0)
    return {
        "formed_seconds": formed,
        "joined_seconds": statistics.median(joined),
        "died_seconds": statistics.median(died),
        "joined_all": joined,
        "died_all": died,
    }


def work(specification: Specification) -> Figures:
    return asyncio.run(measure(specification))


if __name__ == "__main__":
    job_main(work)
