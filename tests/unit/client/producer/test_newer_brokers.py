"""Brokers that are newer than this client."""

import asyncio

import pytest
from tests.unit.client.rogue import LOOPBACK, NODE_ID, Asked, Rogue, rogue

from ottla.client.errors import BrokerError, Undelivered
from ottla.client.producer.producer import AsyncProducer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

NO_NAME_FOR_IT = 9999
TOPIC_ID = b"t" * 16


def with_topic(broker: Rogue) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=NODE_ID, leader_epoch=0, replica_nodes=[NODE_ID])
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=NODE_ID, host=LOOPBACK, port=broker.port)],
        controller_id=NODE_ID,
        topics=[MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])],
    )


def test_an_error_that_has_no_name_here_is_told_at_once_with_its_number() -> None:
    codes = [NO_NAME_FOR_IT, 0]

    async def behave(asked: Asked) -> None:
        assert asked.kind is ProduceRequest
        answer = PartitionProduceResponse(index=0, error_code=codes.pop(0), base_offset=5)
        asked.answer(ProduceResponse(responses=[TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=[answer])]))

    async def work() -> None:
        async with rogue(behave) as broker:
            broker.metadata = lambda asked: with_topic(broker)
            async with AsyncProducer(broker.address, enable_idempotence=False) as producer:
                delivery = producer.send("t", b"refused")
                with pytest.raises(Undelivered, match="code 9999"):
                    await producer.flush(20)
                error = delivery.exception()
                assert isinstance(error, BrokerError)
                assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
                assert "code 9999, which this client does not know" in str(error)
                assert (await producer.send("t", b"written")).offset == 5

    asyncio.run(work())
