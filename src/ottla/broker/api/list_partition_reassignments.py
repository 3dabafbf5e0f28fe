"""ListPartitionReassignments (key 46): the moves of partitions between brokers that are under way.

There are none yet (see `cluster/reassignments.py`), and what is not under way is left out of the answer, known or not.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(ListPartitionReassignmentsRequest)
def handle(
    broker: "Broker", context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
