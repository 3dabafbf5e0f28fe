"""Whatever a broker does, in whatever order: an answer is the right one or a typed error, and then it goes on."""

import asyncio
import struct

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples
from tests.unit.client.rogue import NODE_ID, Asked, connected, rogue

from ottla.client.errors import BrokerUnavailable, InvalidAnswer
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

FAULTS = ("none", "garbage", "wrong id", "length", "cut", "hang up", "twice", "late")


class Whim:
    """Takes one fault after the other. An answer carries what was asked for, so that a mix-up shows."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = list(faults)

    async def __call__(self, asked: Asked) -> None:
        assert isinstance(asked.request, ListGroupsRequest)
        good = ListGroupsResponse(groups=[ListedGroup(group_id=asked.request.states_filter[0])])
        whole = asked.bytes_of(good)
        fault = self.faults.pop(0) if self.faults else "none"
        number = asked.header.correlation_id
        if fault == "garbage":
            asked.answer_bytes(struct.pack(">i", number) + b"\0" + b"\xff" * 30)
        elif fault == "wrong id":
            asked.writer.write(asked.bytes_of(good, correlation_id=number + 1))
        elif fault == "length":
            asked.writer.write(b"\x70\0\0\0" + whole)
        elif fault in ("cut", "hang up"):
            asked.writer.write(whole[:-3] if fault == "cut" else b"")
            asked.writer.close()
        elif fault == "twice":
            asked.writer.write(whole * 2)
        else:
            asked.writer.write(whole[:7])
            await asyncio.sleep(0.001 if fault == "late" else 0)
            asked.writer.write(whole[7:])


async def outcomes(faults: list[str], together: int) -> list[object]:
    seen: list[object] = []
    async with rogue(Whim(faults)) as broker, connected(broker.address) as network:

        async def ask(name: str) -> str:
            request = ListGroupsRequest(states_filter=[name])
            answer = await network.ask(NODE_ID, request, ListGroupsResponse)
            return "right" if [group.group_id for group in answer.groups] == [name] else "mixed up"

        for turn in range(len(faults) // together + 1):
            names = [f"{turn} {number}" for number in range(together)]
            seen += await asyncio.gather(*map(ask, names), return_exceptions=True)
        broker.behave = Whim([])
        async with asyncio.timeout(60.0):
            while (last := (await asyncio.gather(ask("last"), return_exceptions=True))[0]) != "right":
                seen.append(last)
    return seen


@settings(max_examples=examples(40), deadline=None)
@given(faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=20), together=st.integers(1, 4))
def test_an_answer_is_right_or_a_typed_error(faults: list[str], together: int) -> None:
    for outcome in asyncio.run(outcomes(faults, together)):
        assert outcome == "right" or isinstance(outcome, BrokerUnavailable | InvalidAnswer), outcome
