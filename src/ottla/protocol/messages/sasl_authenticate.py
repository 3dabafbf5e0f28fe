"""SaslAuthenticate: one step of the chosen SASL mechanism.

From version 1 the answer tells how long the session may live before it must authenticate again.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int64, field


class SaslAuthenticateRequest(Request, key=ApiKey.SASL_AUTHENTICATE, versions=(0, 2), flexible=2):
    auth_bytes: bytes = field("0+")


class SaslAuthenticateResponse(Response, answers=SaslAuthenticateRequest):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    auth_bytes: bytes = field("0+")
    session_lifetime_ms: Int64 = field("1+", ignorable=True)
