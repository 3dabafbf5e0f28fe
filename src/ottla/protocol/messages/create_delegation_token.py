"""CreateDelegationToken: issue a token that authenticates in its owner's name.

From version 3 the owner may be someone else than the one who asks.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class CreatableRenewers(Struct):
    principal_type: str = field("0+")
    principal_name: str = field("0+")


class CreateDelegationTokenRequest(Request, key=ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3), flexible=2):
    owner_principal_type: str | None = field("3+", nullable="3+")
    owner_principal_name: str | None = field("3+", nullable="3+")
    renewers: list[CreatableRenewers] = field("0+")
    max_lifetime_ms: Int64 = field("0+")


class CreateDelegationTokenResponse(Response, answers=CreateDelegationTokenRequest):
    error_code: Int16 = field("0+")
    principal_type: str = field("0+")
    principal_name: str = field("0+")
    token_requester_principal_type: str = field("3+")
    token_requester_principal_name: str = field("3+")
    issue_timestamp_ms: Int64 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    max_timestamp_ms: Int64 = field("0+")
    token_id: str = field("0+")
    hmac: bytes = field("0+")
    throttle_time_ms: Int32 = field("0+")
