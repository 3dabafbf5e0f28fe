"""DescribeUserScramCredentials: which SCRAM mechanisms users have, and with how many iterations."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class UserName(Struct):
    name: str = field("0+")


class DescribeUserScramCredentialsRequest(
    Request, key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0), flexible=0
):
    users: list[UserName] | None = field("0+", nullable="0+")


class CredentialInfo(Struct):
    mechanism: Int8 = field("0+")
    iterations: Int32 = field("0+")


class DescribeUserScramCredentialsResult(Struct):
    user: str = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    credential_infos: list[CredentialInfo] = field("0+")


class DescribeUserScramCredentialsResponse(Response, answers=DescribeUserScramCredentialsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field("0+")
