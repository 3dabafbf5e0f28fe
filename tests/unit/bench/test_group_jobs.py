"""The drivers of groups must not call a group stable that is not, nor a refused commit a commit."""

from __future__ import annotations

import asyncio

import pytest
from bench.jobs.commits import COMMIT_VERSION, check_commit
from bench.jobs.members import Group, Member
from bench.wire import RefusedError

from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import encode_response
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

SPECIFICATION = {
    "group": "g",
    "topic": "t",
    "port": 1,
    "partitions": 4,
    "session_ms": 1000,
    "heartbeat_ms": 10,
    "protocol": "classic",
}


class Told(Member):
    """A member that knows what it is told and asks nobody."""

    async def _live(self) -> None:
        return

    async def run(self) -> None:
        return


def is_stable(*told: tuple[int, list[int]]) -> bool:
    async def look() -> bool:
        group = Group(SPECIFICATION)
        for number, owned in told:
            member = Told(group)
            member.agree(number, owned)
            group.members.append(member)
        return group._is_stable()

    return asyncio.run(look())


@pytest.mark.parametrize(
    ("told", "stable"),
    [
        ([(3, [0, 1]), (3, [2, 3])], True),
        ([(3, [0, 1]), (2, [2, 3])], False),
        ([(3, [0, 1]), (3, [2])], False),
        ([(3, [0, 1]), (3, [1, 2, 3])], False),
        ([(3, [0, 1, 2, 3]), (3, [])], False),
        ([(-1, [0, 1]), (-1, [2, 3])], False),
    ],
    ids=["agreed", "two rounds", "one left over", "one twice", "one without", "not yet"],
)
def test_what_counts_as_stable(told: list[tuple[int, list[int]]], stable: bool) -> None:
    assert is_stable(*told) is stable


@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_shares_are_whole(count: int) -> None:
    async def shares() -> list[list[int]]:
        return Group(SPECIFICATION).shares(count)

    found = asyncio.run(shares())
    assert len(found) == count
    assert sorted(index for share in found for index in share) == [0, 1, 2, 3]


def test_a_refused_commit_is_found() -> None:
    def answer(code: ErrorCode) -> bytes:
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=int(code))
        response = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])
        return b"".join(encode_response(OffsetCommitRequest, COMMIT_VERSION, 1, response))[4:]

    check_commit(answer(ErrorCode.NONE))
    with pytest.raises(RefusedError, match="NOT_COORDINATOR"):
        check_commit(answer(ErrorCode.NOT_COORDINATOR))
