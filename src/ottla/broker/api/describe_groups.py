"""DescribeGroups (key 15): state, protocol and members of classic groups.

| version | what changed                                                                  |
|---------|-------------------------------------------------------------------------------|
| 3       | what the client may do with the group, if it asks (KIP-430)                   |
| 4       | static members (KIP-345)                                                      |
| 5       | flexible                                                                      |
| 6       | GROUP_ID_NOT_FOUND and a message where older versions have state Dead only    |

A consumer group of the next generation is as good as not there; ConsumerGroupDescribe tells of it.
"""

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.api.answering import all_answered, answered
from ottla.broker.api.authorized_operations import GROUP_OPERATIONS
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.machine import GroupMachine
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NOT_FOUND_SINCE_VERSION = 6
DEAD = "Dead"


@serves(DescribeGroupsRequest)
def handle(
    broker: "Broker", context: RequestContext, request: DescribeGroupsRequest
) -> Promise[DescribeGroupsResponse]:
    def respond(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    return all_answered([_describe(broker, group_id, context.api_version) for group_id in request.groups], respond)


def _describe(broker: "Broker", group_id: str, version: int) -> Promise[DescribedGroup]:
    def refuse(error: KafkaError) -> DescribedGroup:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            return DescribedGroup(group_id=group_id, error_code=error.code)
        if version < NOT_FOUND_SINCE_VERSION:
            return DescribedGroup(group_id=group_id, group_state=DEAD)
        return DescribedGroup(group_id=group_id, group_state=DEAD, error_code=error.code, error_message=error.message)

    look = partial(_look, group_id)
    return answered(broker.groups.read(group_id, look, allows_empty_id=True), lambda group: group, refuse)


def _look(group_id: str, machine: GroupMachine) -> DescribedGroup:
    return machine.describe(group_id)
