"""SaslHandshake: choose a SASL mechanism.

After version 1 the mechanism's tokens travel in SaslAuthenticate; after version 0 they are sent bare. It has no
flexible version, since old clients choose its version without asking.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, field


class SaslHandshakeRequest(Request, key=ApiKey.SASL_HANDSHAKE, versions=(0, 1), flexible=None):
    mechanism: str = field("0+")


class SaslHandshakeResponse(Response, answers=SaslHandshakeRequest):
    error_code: Int16 = field("0+")
    mechanisms: list[str] = field("0+")
