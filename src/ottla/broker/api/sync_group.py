"""SyncGroup (key 14): the leader of a classic group hands in the assignment, every member gets its part.

| version | what changed                                                                    |
|---------|---------------------------------------------------------------------------------|
| 1       | throttle time                                                                   |
| 3       | static members (KIP-345)                                                        |
| 4       | flexible                                                                        |
| 5       | members say which protocol they mean, so that a mistake is noticed (KIP-559)    |

The answer comes when the leader's assignment is written, at the latest when the members' rebalance timeout is over.
"""

from typing import TYPE_CHECKING

from ottla.broker.classic_clients import answered_later, client_of
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.classic.answers import refused_sync
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NAMES_PROTOCOL_SINCE_VERSION = 5


@serves(SyncGroupRequest, abandon_on_close=True)
def handle(
    broker: "Broker", context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Promise[SyncGroupResponse]:
    client = client_of(context)
    if context.api_version >= NAMES_PROTOCOL_SINCE_VERSION and None in (request.protocol_type, request.protocol_name):
        return refused_sync(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return answered_later(
        broker.groups.write(request.group_id, lambda machine: machine.classic.sync(client, request)),
        lambda error: refused_sync(error.code),
    )
