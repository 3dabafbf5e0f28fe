"""AddPartitionsToTxn (key 24): make partitions part of a transaction.

| version | what changed                                                                        |
|---------|-------------------------------------------------------------------------------------|
| 2       | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)                         |
| 3       | flexible                                                                            |
| 4       | from brokers: several transactions at once, also to verify only (KIP-890)           |
| 5       | TRANSACTION_ABORTABLE                                                               |

All partitions of a transaction are added, or none: where one does not exist, or belongs to a coordinator and a client
asks for it, the others get OPERATION_NOT_ATTEMPTED.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.api.transaction_errors import error_code
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.topic_names import INTERNAL_TOPICS
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.runtime.promise import Promise
from ottla.transactions import TopicPartition
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

FENCED_SINCE_VERSION = 2
SEVERAL_SINCE_VERSION = 4

Topics = Sequence[AddPartitionsToTxnTopic]
TopicResults = list[AddPartitionsToTxnTopicResult]


@serves(AddPartitionsToTxnRequest)
def handle(
    broker: "Broker", context: RequestContext, request: AddPartitionsToTxnRequest
) -> Promise[AddPartitionsToTxnResponse]:
    answer: Promise[AddPartitionsToTxnResponse] = Promise()
    if context.api_version < SEVERAL_SINCE_VERSION:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )

        def answered(results: TopicResults) -> None:
            answer.resolve(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

        _add(broker, context.api_version, transaction, answered)
        return answer
    if not request.transactions:
        answer.resolve(AddPartitionsToTxnResponse())
    found: dict[int, AddPartitionsToTxnResult] = {}
    for number, transaction in enumerate(request.transactions):

        def noted(
            results: TopicResults, number: int = number, transactional_id: str = transaction.transactional_id
        ) -> None:
            found[number] = AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=results)
            if len(found) == len(request.transactions):
                in_order = [found[place] for place in range(len(found))]
                answer.resolve(AddPartitionsToTxnResponse(results_by_transaction=in_order))

        _add(broker, context.api_version, transaction, noted)
    return answer


def _add(
    broker: "Broker", version: int, transaction: AddPartitionsToTxnTransaction, answered: Callable[[TopicResults], None]
) -> None:
    """Add or verify the partitions of one transaction, and say what became of each."""
    topics, image = transaction.topics, broker.image
    partitions = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    refused = dict.fromkeys(
        (each for each in partitions if image.partition(*each) is None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    if version < SEVERAL_SINCE_VERSION:
        internal = (each for each in partitions if each.topic in INTERNAL_TOPICS)
        refused |= dict.fromkeys(internal, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if refused:
        answered(_results(topics, lambda each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED)))
        return
    producer = (transaction.producer_id, transaction.producer_epoch)
    name = transaction.transactional_id
    if transaction.verify_only:

        def verified(partition: TopicPartition) -> ErrorCode:
            try:
                broker.transactions.check_partition(name, producer, partition)
            except KafkaError as error:
                return error.code
            return ErrorCode.NONE

        answered(_results(topics, verified))
        return
    client_version = FIRST_VERSION if version < SEVERAL_SINCE_VERSION else EPOCH_BUMP_VERSION

    def added(promise: Promise[None]) -> None:
        code = error_code(promise.exception(), knows_fencing=version >= FENCED_SINCE_VERSION)
        answered(_results(topics, lambda _: code))

    broker.transactions.add_partitions(name, producer, partitions, client_version).add_done_callback(added)


def _results(topics: Topics, code: Callable[[TopicPartition], ErrorCode]) -> TopicResults:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code(TopicPartition(topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
