"""ConsumerGroupHeartbeat (key 68): the one request of a member of a consumer group (KIP-848).

| version | what changed                                                               |
|---------|----------------------------------------------------------------------------|
| 1       | members choose their ids (KIP-1082); subscriptions by regular expression   |

The answer has the member's assignment when it joins, when it tells everything about itself, and when the assignment
changed; otherwise nothing is to be done.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.answering import answered
from ottla.broker.classic_clients import client_of
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.consumer.membership import Client, check_heartbeat
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(ConsumerGroupHeartbeatRequest)
def handle(
    broker: "Broker", context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Promise[ConsumerGroupHeartbeatResponse]:
    settings = broker.groups.context.settings()
    try:
        check_heartbeat(request, context.api_version, settings.group_consumer_assignors)
    except KafkaError as error:
        return _refuse(error)
    sender = client_of(context)
    client = Client(sender.client_id, sender.host)
    promise = broker.groups.write(request.group_id, lambda machine: machine.consumer.heartbeat(request, client))
    return answered(promise, lambda response: response, _refuse)


def _refuse(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
