"""However the bytes of the answers are cut, everybody gets the answer to the question that was asked."""

import asyncio
import socket

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples

from ottla.client.connections_versions import Versions
from ottla.client.connections_wire import Connection
from ottla.protocol.framing import encode_response
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

FETCH_VERSION = FetchRequest.MAX_VERSION
GROUPS_VERSION = ListGroupsRequest.MAX_VERSION

MOST_PIECES = 100
SIZES = st.one_of(st.integers(0, 200), st.integers(0, 200_000), st.sampled_from([16_384, 65_532, 65_536, 65_540]))
CUTS = st.lists(st.one_of(st.integers(1, 10), st.integers(1, 100_000)), min_size=1, max_size=20)


def fetched(number: int, size: int) -> FetchResponse:
    records = memoryview(bytes([number + 1]) * size)
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])])


def listed(number: int) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id=f"group {number}")])


async def answered(sizes: list[int | None], cuts: list[int]) -> list[bytes | str]:
    """Ask once for each size, a fetch or, for None, something small; send the answers in pieces."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    versions = Versions("")
    versions.learn([(1, FETCH_VERSION, FETCH_VERSION), (16, GROUPS_VERSION, GROUPS_VERSION)])
    connection = Connection(
        ours, "peer", versions, limit_bytes=1_000_000, request_timeout_seconds=30.0, lost=lambda lost: None
    )
    futures = [connection.ask(ListGroupsRequest() if size is None else FetchRequest()) for size in sizes]
    pieces: list[bytes] = []
    for number, size in enumerate(sizes):
        if size is None:
            pieces += encode_response(ListGroupsRequest, GROUPS_VERSION, number + 1, listed(number))
        else:
            pieces += encode_response(FetchRequest, FETCH_VERSION, number + 1, fetched(number, size))
    whole = memoryview(b"".join(pieces))
    position = 0
    while position < len(whole):
        for cut in cuts:
            piece = whole[position : position + max(cut, len(whole) // MOST_PIECES)]
            await loop.sock_sendall(theirs, piece)
            position += len(piece)
            await asyncio.sleep(0)
    received = await asyncio.gather(*futures)
    theirs.close()
    await asyncio.sleep(0)
    ours.close()
    return [
        bytes(answer.responses[0].partitions[0].records or b"")
        if isinstance(answer, FetchResponse)
        else answer.groups[0].group_id
        for answer in received
    ]


@settings(max_examples=examples(40), deadline=None)
@given(sizes=st.lists(st.one_of(st.none(), SIZES), min_size=1, max_size=12), cuts=CUTS)
def test_answers_are_put_together_from_any_pieces(sizes: list[int | None], cuts: list[int]) -> None:
    expected = [f"group {n}" if size is None else bytes([n + 1]) * size for n, size in enumerate(sizes)]
    assert asyncio.run(answered(sizes, cuts)) == expected
