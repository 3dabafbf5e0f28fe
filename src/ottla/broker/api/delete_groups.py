"""DeleteGroups (key 42): delete groups that have no members, and their offsets with them (KIP-229).

NON_EMPTY_GROUP for a group with members, GROUP_ID_NOT_FOUND for one that is not there. Each group is answered for
itself; one that is named twice is answered once.
"""

from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.api.answering import all_answered, answered
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.machine import GroupMachine
from ottla.ledger import Decision
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DeleteGroupsRequest)
def handle(broker: "Broker", context: RequestContext, request: DeleteGroupsRequest) -> Promise[DeleteGroupsResponse]:
    results = [_delete(broker, group_id) for group_id in dict.fromkeys(request.groups_names)]
    return all_answered(results, lambda found: DeleteGroupsResponse(results=found))


def _delete(broker: "Broker", group_id: str) -> Promise[DeletableGroupResult]:
    return answered(
        broker.groups.write(group_id, partial(_decide, group_id), allows_empty_id=True),
        lambda nothing: DeletableGroupResult(group_id=group_id),
        lambda error: DeletableGroupResult(group_id=group_id, error_code=error.code),
    )


def _decide(group_id: str, machine: GroupMachine) -> Decision[None]:
    return machine.offsets.delete_group(group_id)
