"""DescribeUserScramCredentials (key 50): nobody has a password here, and the answer says so as Kafka's does (KIP-554).

Kafka's tool asks it together with the quotas of users.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DescribeUserScramCredentialsRequest)
def handle(
    broker: "Broker", context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    times_named = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_result(name, is_repeated=times > 1) for name, times in times_named.items()]
    )


def _result(name: str, *, is_repeated: bool) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.RESOURCE_NOT_FOUND, f"The user {name!r} has no credentials."
    if is_repeated:
        code, message = ErrorCode.DUPLICATE_RESOURCE, f"The user {name!r} is named more than once."
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message)
