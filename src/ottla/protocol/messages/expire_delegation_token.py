"""ExpireDelegationToken: let a delegation token end, now or at some time."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, field


class ExpireDelegationTokenRequest(Request, key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2), flexible=2):
    hmac: bytes = field("0+")
    expiry_time_period_ms: Int64 = field("0+")


class ExpireDelegationTokenResponse(Response, answers=ExpireDelegationTokenRequest):
    error_code: Int16 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+")
