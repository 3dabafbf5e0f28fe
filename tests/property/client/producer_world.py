"""Brokers that take, lose, refuse and repeat what a producer sends, in one thread and by a clock that is moved.

The brokers judge sequence numbers as Kafka does: of every producer id they know the epoch and the last five batches of
a partition. The first batch of an id that they do not know is taken with any sequence.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

from ottla.client.cluster import Cluster, Node, PartitionInfo, TopicInfo
from ottla.client.config import ProducerConfig, resolve
from ottla.client.errors import BrokerUnavailable
from ottla.client.producer._twin import twin
from ottla.client.producer.batches import Batch, Delivery
from ottla.client.producer.metrics import ProducerMetrics
from ottla.client.producer.partitions import PartitionQueue, StickyChoice, TopicQueues
from ottla.client.producer.sender import Sender
from ottla.client.producer.sequences import ProducerIdentity, Sequences
from ottla.client.producer.shipment import Shipment
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.records import read_header, read_records

TOPIC = "events"
TOPIC_ID = b"0123456789abcdef"
NODES = (1, 2)
REMEMBERED = 5


class Dice:
    """Not random at all: what is drawn is not what the simulation is about."""

    def __init__(self) -> None:
        self._next = 0

    def uuid(self) -> bytes:
        return TOPIC_ID

    def below(self, limit: int) -> int:
        self._next += 7
        return self._next % limit


class HandClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def now_ms(self) -> int:
        return round(self.now * 1000)

    def monotonic(self) -> float:
        return self.now


@dataclass
class Written:
    """What a broker remembers of a producer in one partition."""

    epoch: int = -1
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class PartitionLog:
    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.producers: dict[int, Written] = {}

    def append(self, data: bytes, largest_count: int) -> tuple[ErrorCode, int]:
        header = read_header(data)
        if header.record_count > largest_count:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        first, last = header.base_sequence, header.last_sequence
        known = self.producers.setdefault(header.producer_id, Written(header.producer_epoch))
        if header.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch > known.epoch:
            if first != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            known.batches.clear()
            known.epoch = header.producer_epoch
        for base, end, offset in known.batches:
            if (base, end) == (first, last):
                return ErrorCode.NONE, offset
        expected = known.batches[-1][1] + 1 if known.batches else first
        if first < expected:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1
        if first != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = len(self.values)
        self.values += [record.value or b"" for record in read_records(data)]
        known.batches.append((first, last, offset))
        return ErrorCode.NONE, offset


class World:
    """A producer's sender, and two brokers that lead its partitions."""

    def __init__(self, partition_count: int = 2, **settings: object) -> None:
        self.config: ProducerConfig = resolve(ProducerConfig, "localhost:9092", None, settings)
        self.clock = HandClock()
        self.leaders = [NODES[number % len(NODES)] for number in range(partition_count)]
        self.epochs = [0] * partition_count
        self.logs = [PartitionLog() for _ in range(partition_count)]
        self.waiting: dict[int, deque[Shipment]] = {node: deque() for node in NODES}
        self.answers: dict[int, deque[tuple[Shipment, ProduceResponse]]] = {node: deque() for node in NODES}
        self.trouble: dict[int, ErrorCode] = {}
        self.largest_count = 1 << 30
        self.sent: list[tuple[int, bytes, Delivery]] = []
        self._counter = 0
        self.appender = twin.Appender(self.config.buffer_memory, self.config.batch_size, self.config.max_request_size)
        self.appender.clock = self.clock
        self.appender.make_batch = self._make_batch
        self.appender.choose = StickyChoice(Dice(), self.config, self.clock)
        self.appender.wake = lambda: None
        self.appender.own()
        self.cluster = Cluster()
        self.sequences = Sequences()
        self.sequences.begin(ProducerIdentity(42, 0))
        self.sender = Sender(self.config, self.appender, self, Dice(), self.sequences, ProducerMetrics())
        self.learn()
        queues = TopicQueues(TOPIC, TOPIC_ID)
        queues.update(self.cluster.topics[TOPIC], self.cluster)
        self.appender.set_topic(queues)

    def _make_batch(self, queue: PartitionQueue) -> Batch:
        return Batch(self.appender, queue, self.clock.now)

    def request_update(self) -> None:
        self.learn()

    def is_ready(self, node_id: int) -> bool:
        return True

    def learn(self) -> None:
        """The producer learns who leads now."""
        nodes = {node: Node(node, "localhost", 9000 + node) for node in NODES}
        partitions = tuple(
            PartitionInfo(number, leader, self.epochs[number], NODES, NODES)
            for number, leader in enumerate(self.leaders)
        )
        self.cluster = Cluster(
            nodes=MappingProxyType(nodes),
            topics=MappingProxyType({TOPIC: TopicInfo(TOPIC, TOPIC_ID, partitions)}),
            version=self.cluster.version + 1,
        )

    # What happens.

    def send(self, partition: int) -> None:
        self._counter += 1
        value = b"%06d" % self._counter
        self.sent.append((partition, value, self.appender.append(TOPIC, value, partition=partition)))

    def turn(self) -> None:
        shipments, _ = self.sender.turn(self.clock.now)
        for shipment in shipments:
            self.waiting[shipment.node_id].append(shipment)
        self.sender.end_turn(len(shipments))

    def process(self, node: int, code: ErrorCode | None = None, *, after_append: bool = False) -> None:
        """A broker carries out the request that came first, or refuses it."""
        if not self.waiting[node]:
            return
        shipment = self.waiting[node].popleft()
        answers = []
        for data in shipment.request.topic_data[0].partition_data:
            if self.leaders[data.index] != node:
                answers.append(_answer(data.index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1))
            elif code is not None and not after_append:
                answers.append(_answer(data.index, code, -1))
            else:
                said, offset = self.logs[data.index].append(data.records or b"", self.largest_count)
                answers.append(_answer(data.index, code or said, -1 if code else offset))
        response = ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, topic_id=TOPIC_ID, partition_responses=answers)]
        )
        self.answers[node].append((shipment, response))

    def answer(self, node: int) -> None:
        if self.answers[node]:
            shipment, response = self.answers[node].popleft()
            self.sender.answered(shipment, response, self.clock.now)

    def cut(self, node: int, carried_out: int) -> None:
        """The connection breaks: some requests were carried out, and no answer arrives any more."""
        for _ in range(carried_out):
            self.process(node)
        lost = [shipment for shipment, _ in self.answers[node]] + list(self.waiting[node])
        self.answers[node].clear()
        self.waiting[node].clear()
        for shipment in lost:
            self.sender.failed(shipment, BrokerUnavailable("the connection broke"), self.clock.now)

    def move_leader(self, partition: int, *, is_known: bool) -> None:
        self.leaders[partition] = NODES[1 - NODES.index(self.leaders[partition])]
        self.epochs[partition] += 1
        if is_known:
            self.learn()

    def settle(self, most_turns: int = 2000) -> None:
        """Nothing goes wrong any more: everything comes to an end."""
        self.learn()
        for _ in range(most_turns):
            if not self.appender.incomplete:
                return
            self.clock.now += 0.05
            self.turn()
            for node in NODES:
                while self.waiting[node]:
                    self.process(node)
                while self.answers[node]:
                    self.answer(node)
        raise AssertionError(f"{len(self.appender.incomplete)} batches never come to an end")

    # What must be true.

    def check(self, *, all_arrive: bool) -> None:
        for number, log in enumerate(self.logs):
            assert len(set(log.values)) == len(log.values), "a record was written twice"
            assert log.values == sorted(log.values), "records were written out of order"
            self._check_partition(log, [one for one in self.sent if one[0] == number], all_arrive=all_arrive)

    def _check_partition(
        self, log: PartitionLog, sent: Iterable[tuple[int, bytes, Delivery]], *, all_arrive: bool
    ) -> None:
        places = {value: offset for offset, value in enumerate(log.values)}
        for _, value, delivery in sent:
            if not delivery.done():
                continue
            error = delivery.exception()
            assert error is None or not all_arrive, error
            if error is None:
                assert value in places, "an acknowledged record was lost"
                offset = delivery.metadata().offset
                assert offset in (-1, places[value])


def _answer(index: int, code: ErrorCode, offset: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=offset, log_start_offset=0)
