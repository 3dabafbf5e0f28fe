"""ListGroups (key 16): the groups that this broker coordinates.

| version | what changed                                                          |
|---------|-----------------------------------------------------------------------|
| 3       | flexible                                                              |
| 4       | states, also to select by (KIP-518)                                   |
| 5       | types, also to select by (KIP-848)                                    |

Names of states and types are compared without regard to case; an unknown one selects nothing. While a partition is
being loaded there is no list, only COORDINATOR_LOAD_IN_PROGRESS.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.group import Group
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(ListGroupsRequest)
async def handle(broker: "Broker", context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}

    def is_wanted(group: Group) -> bool:
        return (not states or group.state_name.lower() in states) and (not kinds or group.kind in kinds)

    try:
        return ListGroupsResponse(groups=await broker.groups.listed(is_wanted))
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
