"""Brokers that misbehave: the error says what happened, and the next question is answered."""

import asyncio
import re
import struct
from collections.abc import Mapping
from typing import Any, cast

import pytest
from tests.peers.ports import free_port
from tests.unit.client.rogue import NODE_ID, Asked, all_versions, connected, connections, rogue, why_nothing_is_known

from ottla.client.cluster import Cluster
from ottla.client.connections import Connections
from ottla.client.errors import BrokerUnavailable, ClientClosed, InvalidAnswer
from ottla.client.security.oauth import OauthToken
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

PATIENCE_SECONDS = 60.0
GOOD = ListGroupsResponse(groups=[ListedGroup(group_id="billing", protocol_type="consumer")])


async def groups(network: Connections, timeout_seconds: float | None = None) -> list[str]:
    answer = await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse, timeout_seconds=timeout_seconds)
    return [group.group_id for group in answer.groups]


class FirstOnly:
    """Misbehaves on the first question, answers the others."""

    def __init__(self) -> None:
        self.count = 0
        self.was_asked = asyncio.Event()

    async def __call__(self, asked: Asked) -> None:
        self.count += 1
        self.was_asked.set()
        if self.count == 1:
            await self.misbehave(asked)
        else:
            asked.answer(GOOD)

    async def misbehave(self, asked: Asked) -> None:
        raise NotImplementedError


class Garbage(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.answer_bytes(struct.pack(">i", asked.header.correlation_id) + b"\0" + b"\xff" * 40)


class WrongCorrelationId(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.writer.write(asked.bytes_of(GOOD, correlation_id=asked.header.correlation_id + 1))


class EnormousLength(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.writer.write(b"\x7f\xff\xff\xff" + bytes(100))


class NegativeLength(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.writer.write(b"\xff\xff\xff\xff" + bytes(100))


class CutHeader(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.answer_bytes(struct.pack(">i", asked.header.correlation_id))


class ClosesInTheMiddle(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.writer.write(asked.bytes_of(GOOD)[:-5])
        await asked.writer.drain()
        asked.writer.transport.abort()


class ClosesAtOnce(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.writer.transport.abort()


class Silent(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        return None


class AnswersTwice(FirstOnly):
    async def misbehave(self, asked: Asked) -> None:
        asked.writer.write(asked.bytes_of(GOOD) * 2)


@pytest.mark.parametrize("behave", [Garbage, WrongCorrelationId, EnormousLength, NegativeLength, CutHeader])
def test_an_answer_that_is_none_is_told_and_the_next_one_is_good(behave: type[FirstOnly]) -> None:
    async def work() -> None:
        async with rogue(behave()) as broker, connected(broker.address) as network:
            with pytest.raises(InvalidAnswer, match=broker.address):
                await groups(network)
            assert await groups(network) == ["billing"]

    asyncio.run(work())


@pytest.mark.parametrize("behave", [ClosesInTheMiddle, ClosesAtOnce])
def test_a_connection_that_breaks_is_told_and_made_again(behave: type[FirstOnly]) -> None:
    async def work() -> None:
        async with rogue(behave()) as broker, connected(broker.address) as network:
            with pytest.raises(BrokerUnavailable, match=r"may have been carried out|broke"):
                await groups(network)
            assert await groups(network) == ["billing"]

    asyncio.run(work())


def test_a_broker_that_never_answers_is_given_up_after_the_request_timeout() -> None:
    async def work() -> None:
        async with rogue(Silent()) as broker, connected(broker.address, request_timeout_ms=700) as network:
            with pytest.raises(BrokerUnavailable, match="did not answer ListGroups in time"):
                await groups(network)
            assert await groups(network) == ["billing"]
            assert broker.connections == 2

    asyncio.run(work())


def test_a_shorter_time_gives_up_the_question_and_not_the_connection() -> None:
    async def work() -> None:
        late: list[Asked] = []

        async def behave(asked: Asked) -> None:
            late.append(asked)
            if len(late) == 2:
                late[0].answer(ListGroupsResponse())
                late[1].answer(GOOD)

        async with rogue(behave) as broker, connected(broker.address) as network:
            with pytest.raises(BrokerUnavailable, match="in time"):
                await groups(network, timeout_seconds=0.02)
            assert await groups(network) == ["billing"]
            assert broker.connections == 1

    asyncio.run(work())


def test_a_cancelled_question_leaves_the_connection_in_order() -> None:
    async def work() -> None:
        arrived = asyncio.Event()
        late: list[Asked] = []

        async def behave(asked: Asked) -> None:
            late.append(asked)
            arrived.set()
            if len(late) == 2:
                late[0].answer(ListGroupsResponse())
                late[1].answer(GOOD)

        async with rogue(behave) as broker, connected(broker.address) as network:
            first = asyncio.create_task(groups(network))
            await arrived.wait()
            first.cancel()
            assert await groups(network) == ["billing"]
            assert first.cancelled()
            assert broker.connections == 1

    asyncio.run(work())


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async def work() -> None:
        async with rogue(AnswersTwice()) as broker, connected(broker.address) as network:
            assert await groups(network) == ["billing"]
            assert await groups(network) == ["billing"]
            assert broker.connections == 2

    asyncio.run(work())


def test_answers_byte_by_byte_are_put_together() -> None:
    async def behave(asked: Asked) -> None:
        for byte in asked.bytes_of(GOOD):
            asked.writer.write(bytes([byte]))
            await asyncio.sleep(0)

    async def work() -> None:
        async with rogue(behave) as broker, connected(broker.address) as network:
            assert [await groups(network) for _ in range(3)] == [["billing"]] * 3

    asyncio.run(work())


def test_questions_in_flight_are_answered_in_their_order_however_the_bytes_are_cut() -> None:
    async def work() -> None:
        waiting: list[Asked] = []

        async def behave(asked: Asked) -> None:
            waiting.append(asked)
            if len(waiting) < 40:
                return
            answers = b"".join(
                one.bytes_of(ListGroupsResponse(groups=[ListedGroup(group_id=f"{number}" * (number * 50))]))
                for number, one in enumerate(waiting)
            )
            for start in range(0, len(answers), 7001):
                asked.writer.write(answers[start : start + 7001])
                await asked.writer.drain()
                await asyncio.sleep(0)

        async with rogue(behave) as broker, connected(broker.address) as network:
            answered = await asyncio.gather(*(groups(network) for _ in range(40)))
        assert answered == [[f"{number}" * (number * 50)] for number in range(40)]
        assert broker.connections == 1

    asyncio.run(work())


def test_those_who_wait_when_a_connection_breaks_all_learn_of_it() -> None:
    async def work() -> None:
        waiting: list[Asked] = []

        async def behave(asked: Asked) -> None:
            waiting.append(asked)
            if len(waiting) == 5:
                asked.writer.transport.abort()

        async with rogue(behave) as broker, connected(broker.address) as network:
            answered = await asyncio.gather(*(groups(network) for _ in range(5)), return_exceptions=True)
            assert [type(one) for one in answered] == [BrokerUnavailable] * 5

    asyncio.run(work())


def test_closing_ends_what_waits_and_refuses_what_comes() -> None:
    async def work() -> None:
        behave = Silent()
        async with rogue(behave) as broker, connected(broker.address) as network:
            waiting = asyncio.create_task(groups(network))
            await behave.was_asked.wait()
            await network.close()
            with pytest.raises(ClientClosed):
                await waiting
            for question in (groups(network), network.updated(Cluster(), 1.0)):
                with pytest.raises(ClientClosed):
                    await question

    asyncio.run(work())


HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x46"


@pytest.mark.parametrize(("bytes_sent", "hint"), [(HTTP, "HTTP"), (TLS_ALERT, "security.protocol")])
def test_a_server_of_another_kind_is_recognised(bytes_sent: bytes, hint: str) -> None:
    async def work() -> None:
        async with rogue() as broker, connections(broker.address) as network:
            broker.api_versions = lambda asked: asked.writer.write(bytes_sent)
            assert re.search(hint, await why_nothing_is_known(network))

    asyncio.run(work())


def test_a_connection_that_ends_with_the_last_answer_of_its_setup_is_made_again() -> None:
    """The second answer, which nobody asked for, ends it in the very call that receives the first."""

    async def behave(asked: Asked) -> None:
        asked.answer(GOOD)

    async def work() -> None:
        async with rogue(behave) as broker:
            answer = ApiVersionsResponse(api_keys=all_versions())
            broker.api_versions = lambda asked: asked.writer.write(
                asked.bytes_of(answer) * (2 if broker.connections == 1 else 1)
            )
            async with connections(broker.address) as network:
                await network.updated(Cluster(), PATIENCE_SECONDS)
                assert await groups(network) == ["billing"]
            assert broker.connections == 2

    asyncio.run(work())


def test_what_nobody_expected_while_connecting_fails_one_attempt() -> None:
    tokens = [OauthToken("bad", extensions=cast(Mapping[str, str], None)), OauthToken("good")]

    async def behave(asked: Asked) -> None:
        if asked.kind is SaslHandshakeRequest:
            asked.answer(SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]))
        else:
            asked.answer(asked.kind.RESPONSE())

    async def work() -> None:
        settings: dict[str, Any] = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_callback": lambda: tokens.pop(0),
        }
        async with rogue(behave) as broker, connections(broker.address, **settings) as network:
            await network.updated(Cluster(), PATIENCE_SECONDS)
        assert not tokens

    asyncio.run(work())


def test_a_server_that_hangs_up_on_the_first_request_makes_one_look_at_the_security_protocol() -> None:
    async def work() -> None:
        async with rogue() as broker, connections(broker.address) as network:
            broker.api_versions = lambda asked: asked.writer.transport.abort()
            assert re.search(r"broke|security\.protocol", await why_nothing_is_known(network))

    asyncio.run(work())


@pytest.mark.parametrize("servers", ["{dead},{good}", "{good},{dead}", "not a name:9092,{good},{dead}"])
def test_one_good_bootstrap_server_is_enough(servers: str) -> None:
    async def work() -> None:
        async with rogue() as broker:
            listed = servers.format(dead=f"127.0.0.1:{free_port()}", good=broker.address)
            async with connected(listed) as network:
                assert list(network.cluster.nodes) == [NODE_ID]

    asyncio.run(work())


def test_nobody_there_is_told_with_the_reason() -> None:
    async def work() -> None:
        async with connections(f"127.0.0.1:{free_port()}") as network:
            assert re.search(r"Connection refused.*is a broker running there", await why_nothing_is_known(network))

    asyncio.run(work())


def test_a_name_that_does_not_resolve_is_told_as_that() -> None:
    async def work() -> None:
        async with connections("not a name:9092") as network:
            assert re.search(r"does not resolve.*bootstrap.servers", await why_nothing_is_known(network))

    asyncio.run(work())


def test_a_silent_port_is_given_up_after_the_setup_timeout() -> None:
    async def work() -> None:
        async with rogue() as broker, connections(broker.address, socket_connection_setup_timeout_ms=50) as network:
            broker.api_versions = lambda asked: None
            assert re.search("did not answer within", await why_nothing_is_known(network))

    asyncio.run(work())
