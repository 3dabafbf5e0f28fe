"""JoinGroup (key 11): a member enters a classic group and waits for the others.

| version | what changed                                                                    |
|---------|---------------------------------------------------------------------------------|
| 1       | a rebalance timeout beside the session timeout, which it was before (KIP-62)    |
| 4       | a new member is first turned back with an id to come back with (KIP-394)        |
| 5       | static members (KIP-345)                                                        |
| 6       | flexible                                                                        |
| 7       | the protocol type in the answer; no protocol is null (KIP-559)                  |
| 8       | the reason for joining, for the log (KIP-800)                                   |
| 9       | a static leader that came back is told to skip the assignment (KIP-814)         |

The answer may take minutes: it comes when all members have joined or the time for it is over. Until then later answers
of this connection wait. A client that hangs up stays a member until its session is over.
"""

from typing import TYPE_CHECKING

from ottla.broker.classic_clients import answered_later, client_of
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.classic.answers import refused_join
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NULL_PROTOCOL_SINCE_VERSION = 7

Answer = JoinGroupResponse | Promise[JoinGroupResponse]


@serves(JoinGroupRequest, abandon_on_close=True)
def handle(broker: "Broker", context: RequestContext, request: JoinGroupRequest) -> Answer:
    client = client_of(context)
    refusal = _refusal(broker, request)
    if refusal is not None:
        return _in_version(refused_join(refusal, request.member_id), context.api_version)
    return answered_later(
        broker.groups.write(request.group_id, lambda machine: machine.classic.join(client, request)),
        lambda error: refused_join(error.code),
        lambda response: _in_version(response, context.api_version),
    )


def _refusal(broker: "Broker", request: JoinGroupRequest) -> ErrorCode | None:
    """What is wrong with the request, whatever group it is for."""
    settings = broker.groups.context.settings()
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    lowest_ms, highest_ms = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not lowest_ms <= request.session_timeout_ms <= highest_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return None


def _in_version(response: JoinGroupResponse, api_version: int) -> JoinGroupResponse:
    """Before version 7, no protocol is an empty name."""
    if not response.protocol_name:
        response.protocol_name = None if api_version >= NULL_PROTOCOL_SINCE_VERSION else ""
    return response
