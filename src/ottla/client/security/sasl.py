"""The SASL conversation of a connection: SaslHandshake, then the mechanism's tokens in SaslAuthenticate."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from ottla.client.connections_wire import Connection
from ottla.client.errors import AuthenticationFailed, error_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.client.security.oauth import OauthToken

_SEPARATOR = "\x01"
_MOST_STEPS = 5


class Mechanism(Protocol):
    """One conversation, sans-IO."""

    def first(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None:
        """What to send next; None when the conversation is at its end."""
        ...


class Plain:
    """User and password as they are: for connections with TLS."""

    def __init__(self, username: str, password: str) -> None:
        self._message = b"\0" + username.encode() + b"\0" + password.encode()

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        return None


class Bearer:
    """A token, with extensions (RFC 7628)."""

    def __init__(self, token: "OauthToken") -> None:
        pieces = [f"auth=Bearer {token.token}", *(f"{name}={text}" for name, text in sorted(token.extensions.items()))]
        self._message = f"n,,{_SEPARATOR}{_SEPARATOR.join(pieces)}{_SEPARATOR}{_SEPARATOR}".encode()

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        """A broker that refuses says so as JSON, and wants a byte before it ends the conversation."""
        return _SEPARATOR.encode() if challenge else None


async def converse(connection: Connection, name: str, mechanism: Mechanism, who: str) -> int:
    """Authenticate; answers how many milliseconds it holds, 0 for as long as the connection does."""
    handshake: SaslHandshakeResponse = await connection.ask(SaslHandshakeRequest(mechanism=name))
    if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AuthenticationFailed(
            f"{connection.name} does not have {name}: set sasl.mechanism to one that it has "
            f"({', '.join(sorted(handshake.mechanisms)) or 'none'})"
        )
    if handshake.error_code:
        raise AuthenticationFailed(
            f"{connection.name} does not want SASL on that port ({error_of(handshake.error_code)}): use another "
            "port, or security.protocol without SASL"
        )
    loop = asyncio.get_running_loop()
    message: bytes | None = mechanism.first()
    for _ in range(_MOST_STEPS):
        assert message is not None
        answer: SaslAuthenticateResponse = await connection.ask(SaslAuthenticateRequest(auth_bytes=message))
        if answer.error_code:
            reason = error_of(answer.error_code, answer.error_message or "")
            raise AuthenticationFailed(f"{connection.name} refused {who} ({reason}): check the credentials")
        challenge = bytes(answer.auth_bytes)
        # With a challenge there are thousands of hashes to compute: not on the loop.
        message = await loop.run_in_executor(None, mechanism.answer, challenge) if challenge else mechanism.answer(b"")
        if message is None:
            return answer.session_lifetime_ms
    raise AuthenticationFailed(f"{connection.name} does not come to an end with {name}")
