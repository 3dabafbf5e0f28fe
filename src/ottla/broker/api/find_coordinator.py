"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

| version | what changed                                                  |
|---------|---------------------------------------------------------------|
| 1       | transactional ids as well as groups (KIP-98)                  |
| 3       | flexible                                                      |
| 4       | several keys at once (KIP-699)                                |
| 6       | share groups (KIP-932)                                        |

There are no coordinators yet: every valid key gets COORDINATOR_NOT_AVAILABLE. The API is offered all the same,
because librdkafka takes a broker without it for one too old for lz4 and silently stops compressing with it.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

SEVERAL_KEYS_SINCE_VERSION = 4
SHARE_KEYS_SINCE_VERSION = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2

_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "there is no coordinator here; assign partitions instead",
    ErrorCode.INVALID_REQUEST: "the key type is not known or its key is malformed",
}


@serves(FindCoordinatorRequest)
def handle(broker: "Broker", context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    version = context.api_version
    if version < SEVERAL_KEYS_SINCE_VERSION:
        code = _error(request.key_type, request.key, version)
        return FindCoordinatorResponse(error_code=code, error_message=_MESSAGES[code], node_id=-1, host="", port=-1)
    response = FindCoordinatorResponse()
    for key in request.coordinator_keys:
        code = _error(request.key_type, key, version)
        response.coordinators.append(
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=_MESSAGES[code])
        )
    return response


def _error(key_type: int, key: str, version: int) -> ErrorCode:
    if key_type in (GROUP, TRANSACTION):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    is_share_key = key_type == SHARE and version >= SHARE_KEYS_SINCE_VERSION and key.count(":") == 2
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_share_key else ErrorCode.INVALID_REQUEST
