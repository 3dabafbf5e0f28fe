"""DescribeTransactions (key 65): state, producer and partitions of transactional ids (KIP-664)."""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import KafkaError
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DescribeTransactionsRequest)
def handle(
    broker: "Broker", context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_described(broker, transactional_id) for transactional_id in request.transactional_ids]
    )


def _described(broker: "Broker", transactional_id: str) -> TransactionState:
    try:
        transaction = broker.transactions.describe(transactional_id)
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.status.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
