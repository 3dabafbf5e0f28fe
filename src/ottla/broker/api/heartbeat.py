"""Heartbeat (key 12): a member of a classic group shows that it is alive, and learns whether its generation holds.

| version | what changed                                                    |
|---------|-----------------------------------------------------------------|
| 1       | throttle time                                                   |
| 3       | static members (KIP-345)                                        |
| 4       | flexible                                                        |

While the groups are being loaded every heartbeat is taken for good, as in Kafka: members have a whole session left
after it.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.answering import answered
from ottla.broker.classic_clients import client_of
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.classic.answers import heartbeat
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(HeartbeatRequest)
def handle(broker: "Broker", context: RequestContext, request: HeartbeatRequest) -> Promise[HeartbeatResponse]:
    client = client_of(context)
    decided = broker.groups.write(request.group_id, lambda machine: machine.classic.heartbeat(client, request))
    return answered(decided, lambda response: response, _refused)


def _refused(error: KafkaError) -> HeartbeatResponse:
    return heartbeat(ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code)
