"""ConsumerGroupDescribe (key 69): consumer groups of the next generation, with their members (KIP-848).

| version | what changed                                                  |
|---------|---------------------------------------------------------------|
| 1       | whether a member speaks the classic protocol (KIP-1099)       |

A classic group is as good as not there; DescribeGroups tells of it.
"""

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.api.answering import all_answered, answered
from ottla.broker.api.authorized_operations import GROUP_OPERATIONS
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.machine import GroupMachine
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(ConsumerGroupDescribeRequest)
def handle(
    broker: "Broker", context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Promise[ConsumerGroupDescribeResponse]:
    def respond(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    return all_answered([_describe(broker, group_id) for group_id in request.group_ids], respond)


def _describe(broker: "Broker", group_id: str) -> Promise[DescribedGroup]:
    def refuse(error: KafkaError) -> DescribedGroup:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)

    return answered(broker.groups.read(group_id, partial(_look, group_id)), lambda group: group, refuse)


def _look(group_id: str, machine: GroupMachine) -> DescribedGroup:
    return machine.consumer.describe(group_id)
