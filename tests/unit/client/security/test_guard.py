"""What a configuration asks of a connection, and SASL with a broker of the test."""

import asyncio
from typing import Any

import pytest
from tests.unit.client.rogue import NODE_ID, Asked, connected, connections, rogue

from ottla.client.cluster import Cluster
from ottla.client.config import ProducerConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import AuthenticationFailed, BrokerUnavailable, ConfigError, InvalidAnswer
from ottla.client.security.guard import Guard
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.testing.runtime import ManualClock, SeededIds

PLAIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "alice",
    "sasl_password": "s3cret",
}


class Sasl:
    """Answers the conversation of PLAIN; sessions last as long as a test says."""

    def __init__(self, session_lifetime_ms: int = 0) -> None:
        self.session_lifetime_ms = session_lifetime_ms
        self.tokens: list[bytes] = []
        self.code = 0
        self.order: list[type[Any]] = []

    async def __call__(self, asked: Asked) -> None:
        self.order.append(asked.kind)
        if isinstance(asked.request, SaslHandshakeRequest):
            asked.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))
        elif isinstance(asked.request, SaslAuthenticateRequest):
            self.tokens.append(bytes(asked.request.auth_bytes))
            asked.answer(SaslAuthenticateResponse(error_code=self.code, session_lifetime_ms=self.session_lifetime_ms))
        else:
            asked.answer(ListGroupsResponse())


def test_plain_sends_user_and_password_once_for_a_connection() -> None:
    async def work() -> None:
        behave = Sasl()
        async with rogue(behave) as broker, connected(broker.address, **PLAIN) as network:
            for _ in range(3):
                await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
        assert behave.tokens == [b"\0alice\0s3cret"]

    asyncio.run(work())


def test_a_session_is_renewed_on_the_same_connection_with_nothing_in_between() -> None:
    async def work() -> None:
        behave = Sasl(session_lifetime_ms=40)
        async with rogue(behave) as broker, connected(broker.address, **PLAIN) as network:
            async with asyncio.timeout(60.0):
                while len(behave.tokens) < 4:
                    await asyncio.gather(
                        *(network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse) for _ in range(5))
                    )
            assert broker.connections == 1
            for first, second in zip(behave.order, behave.order[1:], strict=False):
                if first is SaslHandshakeRequest:
                    assert second is SaslAuthenticateRequest

    asyncio.run(work())


async def ask_on(network: Connections) -> None:
    while True:
        await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)


def test_a_renewal_that_is_refused_is_told_and_tried_again() -> None:
    async def work() -> None:
        behave = Sasl(session_lifetime_ms=40)
        async with rogue(behave) as broker, connected(broker.address, **PLAIN) as network:
            behave.code = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
            with pytest.raises(AuthenticationFailed, match="refused user 'alice'"):
                await asyncio.wait_for(ask_on(network), 60.0)
            behave.code = 0
            async with asyncio.timeout(60.0):
                while True:
                    try:
                        await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
                        break
                    except (AuthenticationFailed, BrokerUnavailable):
                        await network.backoff(0)

    asyncio.run(work())


def test_a_connection_that_ends_with_the_last_answer_of_a_renewal_is_made_again() -> None:
    """The second answer, which nobody asked for, ends it in the very call that receives the first."""

    class AnswersTwice(Sasl):
        async def __call__(self, asked: Asked) -> None:
            await super().__call__(asked)
            if asked.kind is SaslAuthenticateRequest and len(self.tokens) == 2:
                asked.answer(SaslAuthenticateResponse())

    async def work() -> None:
        behave = AnswersTwice(session_lifetime_ms=40)
        async with rogue(behave) as broker, connected(broker.address, **PLAIN) as network:
            with pytest.raises((BrokerUnavailable, InvalidAnswer)):
                await asyncio.wait_for(ask_on(network), 60.0)
            await network.ask(NODE_ID, ListGroupsRequest(), ListGroupsResponse)
            assert broker.connections == 2

    asyncio.run(work())


def test_a_conversation_that_does_not_end_is_given_up() -> None:
    async def behave(asked: Asked) -> None:
        if isinstance(asked.request, SaslHandshakeRequest):
            asked.answer(SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]))
        else:
            asked.answer(SaslAuthenticateResponse(auth_bytes=b"{}"))

    async def work() -> None:
        settings: dict[str, Any] = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_callback": lambda: "token",
        }
        async with rogue(behave) as broker, connections(broker.address, **settings) as network:
            with pytest.raises(AuthenticationFailed, match="does not come to an end"):
                await network.updated(Cluster(), 20.0)

    asyncio.run(work())


@pytest.mark.parametrize(
    "missing",
    [
        {"sasl_username": None},
        {"sasl_password": None},
        {"sasl_username": ""},
        {"sasl_username": None, "sasl_mechanism": "SCRAM-SHA-512"},
    ],
)
def test_credentials_are_needed(missing: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"needs sasl\.username and sasl\.password"):
        Guard(resolve(ProducerConfig, "localhost:9092", None, {**PLAIN, **missing}), ManualClock(), SeededIds())


def test_plain_connections_need_nothing() -> None:
    guard = Guard(
        resolve(ProducerConfig, "localhost:9092", None, {"sasl_mechanism": "PLAIN"}), ManualClock(), SeededIds()
    )
    assert guard.tls_context() is None
