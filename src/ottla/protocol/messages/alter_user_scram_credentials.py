"""AlterUserScramCredentials: set or remove SCRAM credentials of users.

The password never travels: the client salts it and sends what came out.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class ScramCredentialDeletion(Struct):
    name: str = field("0+")
    mechanism: Int8 = field("0+")


class ScramCredentialUpsertion(Struct):
    name: str = field("0+")
    mechanism: Int8 = field("0+")
    iterations: Int32 = field("0+")
    salt: bytes = field("0+")
    salted_password: bytes = field("0+")


class AlterUserScramCredentialsRequest(Request, key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0), flexible=0):
    deletions: list[ScramCredentialDeletion] = field("0+")
    upsertions: list[ScramCredentialUpsertion] = field("0+")


class AlterUserScramCredentialsResult(Struct):
    user: str = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")


class AlterUserScramCredentialsResponse(Response, answers=AlterUserScramCredentialsRequest):
    throttle_time_ms: Int32 = field("0+")
    results: list[AlterUserScramCredentialsResult] = field("0+")
