"""LeaveGroup (key 13): members leave a classic group, or are taken out of it.

| version | what changed                                                                    |
|---------|---------------------------------------------------------------------------------|
| 1       | throttle time                                                                   |
| 3       | several members at once, static ones by their instance (KIP-345)                |
| 4       | flexible                                                                        |
| 5       | the reason, for the log (KIP-800)                                               |
"""

from typing import TYPE_CHECKING

from ottla.broker.api.answering import answered
from ottla.broker.classic_clients import client_of
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.classic.answers import refused_leave
from ottla.groups.classic.groups import LEAVES_MANY_SINCE_VERSION
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(LeaveGroupRequest)
def handle(broker: "Broker", context: RequestContext, request: LeaveGroupRequest) -> Promise[LeaveGroupResponse]:
    client = client_of(context)
    decided = broker.groups.write(request.group_id, lambda machine: machine.classic.leave(client, request))
    return answered(
        decided,
        lambda response: _in_version(response, context.api_version),
        lambda error: refused_leave(error.code),
    )


def _in_version(response: LeaveGroupResponse, api_version: int) -> LeaveGroupResponse:
    """Before version 3 there is one member, and its error is the answer's."""
    if api_version < LEAVES_MANY_SINCE_VERSION and response.members:
        return refused_leave(ErrorCode(response.members[0].error_code))
    return response
