"""RenewDelegationToken: let a delegation token live longer."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, field


class RenewDelegationTokenRequest(Request, key=ApiKey.RENEW_DELEGATION_TOKEN, versions=(1, 2), flexible=2):
    hmac: bytes = field("0+")
    renew_period_ms: Int64 = field("0+")


class RenewDelegationTokenResponse(Response, answers=RenewDelegationTokenRequest):
    error_code: Int16 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    throttle_time_ms: Int32 = field("0+")
