"""DescribeDelegationToken: the delegation tokens of some owners.

Version 3 also tells who asked for each token.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = field("0+")
    principal_name: str = field("0+")


class DescribeDelegationTokenRequest(Request, key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3), flexible=2):
    owners: list[DescribeDelegationTokenOwner] | None = field("0+", nullable="0+")


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = field("0+")
    principal_name: str = field("0+")


class DescribedDelegationToken(Struct):
    principal_type: str = field("0+")
    principal_name: str = field("0+")
    token_requester_principal_type: str = field("3+")
    token_requester_principal_name: str = field("3+")
    issue_timestamp: Int64 = field("0+")
    expiry_timestamp: Int64 = field("0+")
    max_timestamp: Int64 = field("0+")
    token_id: str = field("0+")
    hmac: bytes = field("0+")
    renewers: list[DescribedDelegationTokenRenewer] = field("0+")


class DescribeDelegationTokenResponse(Response, answers=DescribeDelegationTokenRequest):
    error_code: Int16 = field("0+")
    tokens: list[DescribedDelegationToken] = field("0+")
    throttle_time_ms: Int32 = field("0+")
