"""One Produce request: the batches in it, and the way from its answer back to them."""

from collections.abc import Iterator, Mapping

from ottla.client.config import ProducerConfig
from ottla.client.errors import InvalidAnswer
from ottla.client.producer.batches import Batch
from ottla.client.producer.partitions import TopicQueues
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records import Codec

# Whoever sends more than that at once sends others soon.
FEW_RECORDS = 3


class Shipment:
    """At most one batch of each partition. `request` has them as they are now: one that is sent again is made anew."""

    __slots__ = ("batches", "is_large", "node_id", "request", "sent_at")

    def __init__(
        self,
        node_id: int,
        batches: list[Batch],
        topics: Mapping[str, TopicQueues],
        config: ProducerConfig,
        codec: Codec,
        now: float,
    ) -> None:
        self.node_id = node_id
        self.batches = batches
        self.is_large = len(batches) > 1 or batches[0].count > FEW_RECORDS
        self.sent_at = now
        is_transactional = config.transactional_id is not None
        by_topic: dict[str, TopicProduceData] = {}
        for batch in batches:
            queue = batch.queue
            data = by_topic.get(queue.topic)
            if data is None:
                topic_id = topics[queue.topic].topic_id
                data = by_topic[queue.topic] = TopicProduceData(name=queue.topic, topic_id=topic_id, partition_data=[])
            records = batch.framed(codec, is_transactional)
            data.partition_data.append(PartitionProduceData(index=queue.number, records=records))
        self.request = ProduceRequest(
            transactional_id=config.transactional_id,
            acks=config.acks,
            timeout_ms=config.request_timeout_ms,
            topic_data=list(by_topic.values()),
        )

    def unsettled(self) -> list[Batch]:
        """Of which nothing is known: neither done, nor to be sent again, nor split."""
        return [
            batch
            for batch in self.batches
            if not batch.is_done and batch not in batch.queue.closed and batch.moved is None
        ]

    def match(self, response: ProduceResponse) -> Iterator[tuple[Batch, PartitionProduceResponse]]:
        """What the answer says about each batch; topics are named by their id from version 13 on."""
        batches = {(batch.queue.topic, batch.queue.number): batch for batch in self.batches}
        names = {topic.topic_id: topic.name for topic in self.request.topic_data}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id)
            for answer in topic.partition_responses:
                batch = batches.get((name or "", answer.index))
                if batch is None:
                    raise InvalidAnswer(f"the answer is about {name}-{answer.index}, which was not in the request")
                yield batch, answer
