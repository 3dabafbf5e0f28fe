"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664).

| version | what changed                                                   |
|---------|----------------------------------------------------------------|
| 1       | only those that are open for longer than a time (KIP-994)      |
| 2       | only those whose id matches a pattern (KIP-1152)               |
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from ottla.transactions.listing import Filters, pattern_of_ids

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(ListTransactionsRequest)
async def handle(
    broker: "Broker", context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    pattern = request.transactional_id_pattern
    try:
        filters = Filters(
            states=tuple(request.state_filters),
            producer_ids=frozenset(request.producer_id_filters),
            duration_ms=request.duration_filter,
            pattern=pattern_of_ids(pattern) if pattern else None,
        )
        found = await broker.transactions.find(filters)
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=filters.unknown_states,
        transaction_states=[
            TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.status.title,
            )
            for transaction in found
        ],
    )
