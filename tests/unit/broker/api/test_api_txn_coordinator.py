"""The requests of transactions, where a conversation of one producer does not reach."""

import pytest
from tests.unit.broker.api.questions import create_topic
from tests.unit.broker.transactional_client import TransactionalProducer
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

GOOD = ErrorCode.NONE


def wanted(producer: TransactionalProducer, *topics: str, verify_only: bool = False) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics],
    )


@pytest.mark.parametrize("version", [4, 5])
def test_several_transactions_at_once(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic)
    one, two, three = (TransactionalProducer(client, f"{topic}-{name}-{version}").begin() for name in "123")
    transactions = [
        wanted(one, topic),
        wanted(two, topic, "not-there"),
        wanted(three, topic, verify_only=True),
    ]
    answer = client.ask(AddPartitionsToTxnRequest(transactions=transactions), AddPartitionsToTxnResponse, version)
    found = {
        result.transactional_id: {
            each.name: ErrorCode(each.results_by_partition[0].partition_error_code) for each in result.topic_results
        }
        for result in answer.results_by_transaction
    }
    assert found == {
        one.name: {topic: GOOD},
        two.name: {topic: ErrorCode.OPERATION_NOT_ATTEMPTED, "not-there": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        three.name: {topic: ErrorCode.TRANSACTION_ABORTABLE},
    }
    verify = AddPartitionsToTxnRequest(transactions=[wanted(one, topic, verify_only=True)])
    (result,) = client.ask(verify, AddPartitionsToTxnResponse, version).results_by_transaction
    assert result.topic_results[0].results_by_partition[0].partition_error_code == GOOD
    assert one.end(commit=False) == GOOD


def test_partitions_of_coordinators_are_not_for_clients(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    producer = TransactionalProducer(client, f"{topic}-internal").begin()
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (topic, "__transaction_state")]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics,
    )
    results = client.ask(request, AddPartitionsToTxnResponse, 3).results_by_topic_v3_and_below
    found = {each.name: ErrorCode(each.results_by_partition[0].partition_error_code) for each in results}
    assert found == {
        topic: ErrorCode.OPERATION_NOT_ATTEMPTED,
        "__transaction_state": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_several_descriptions_at_once(client: WireClient, topic: str) -> None:
    producer = TransactionalProducer(client, f"{topic}-described").begin()
    request = DescribeTransactionsRequest(transactional_ids=[producer.name, "nobody", ""])
    states = client.ask(request, DescribeTransactionsResponse).transaction_states
    assert [(state.transactional_id, ErrorCode(state.error_code)) for state in states] == [
        (producer.name, GOOD),
        ("nobody", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_REQUEST),
    ]
    assert (states[0].transaction_state, states[0].producer_id) == ("Empty", producer.producer_id)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 3), (5, -1)])
def test_half_a_producer(client: WireClient, producer_id: int, epoch: int) -> None:
    request = InitProducerIdRequest(
        transactional_id="half", transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=epoch
    )
    assert client.ask(request, InitProducerIdResponse).error_code == ErrorCode.INVALID_REQUEST
