"""Which batches go now, and what their answers mean. No I/O and no clock: the producer's loop drives it.

    turn(now) -> shipments        every shipment is one Produce request to one broker
    answered(shipment, response)  the broker said something about each batch
    failed(shipment, error)       it did not

A batch is ready when it is full, has waited for `linger.ms`, or when somebody flushes, waits for memory or closes; one
that is sent again, when its backoff is over or its partition has a new leader. A request takes one batch of each
partition of its broker, at most `max.request.size` in all. A batch is given up `delivery.timeout.ms` after its
first record, wherever it is by then.
"""

import logging
from collections.abc import Iterable, Mapping

from ottla.client.cluster import NO_LEADER, Cluster
from ottla.client.config import ProducerConfig
from ottla.client.errors import BrokerUnavailable, InvalidAnswer, OttlaError, error_of
from ottla.client.producer._twin import twin
from ottla.client.producer.batches import Batch
from ottla.client.producer.metrics import ProducerMetrics
from ottla.client.producer.partitions import PartitionQueue
from ottla.client.producer.rules import (
    STALE,
    UNCERTAIN,
    Surroundings,
    TransactionRules,
    backoff_seconds,
    expired,
    level_of,
    text_of,
)
from ottla.client.producer.sequences import Sequences
from ottla.client.producer.shipment import Shipment
from ottla.client.producer.splitting import split
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.records import Codec
from ottla.runtime import IdSource

logger = logging.getLogger(__name__)

# Below this a batch is compressed on the loop: a worker would cost more than it takes off.
COMPRESS_ON_LOOP_BYTES = 64 * 1024


class Sender:
    def __init__(
        self,
        config: ProducerConfig,
        appender: "twin.Appender",
        surroundings: Surroundings,
        ids: IdSource,
        sequences: Sequences | None,
        metrics: ProducerMetrics,
        transactions: TransactionRules | None = None,
    ) -> None:
        self._appender = appender
        self._surroundings = surroundings
        self._ids = ids
        self._sequences = sequences
        self._transactions = transactions
        self._metrics = metrics
        self._config = config
        self._linger = config.linger_ms / 1000
        self._delivery_timeout = config.delivery_timeout_ms / 1000
        self._max_in_flight = config.max_in_flight_requests_per_connection
        self._keeps_order = self._max_in_flight == 1
        self._codec = Codec.from_name(config.compression_type)
        self._compresses = self._codec is not Codec.NONE
        self.level = level_of(config)
        self._in_flight: dict[int, int] = {}
        self._large_in_flight = 0
        self._turns = 0
        self._expires_at = 0.0
        self._next_at = 0.0
        self._progress = False
        self._cluster_version = -1
        # Everything there is goes at once while somebody flushes, waits for memory or closes.
        self.hurries = 0
        self.to_compress: list[Batch] = []
        self.is_update_wanted = False

    @property
    def is_calm(self) -> bool:
        """Whether nothing is on its way, or one request of a few records: those who send do it now and then."""
        return not self._in_flight or (not self._large_in_flight and self.in_flight_requests == 1)

    @property
    def in_flight_requests(self) -> int:
        return sum(self._in_flight.values())

    @property
    def codec(self) -> Codec:
        return self._codec

    def learn(self, cluster: Cluster) -> None:
        """The cluster has changed: leaders, and partitions that became more."""
        self._cluster_version = cluster.version
        for name, topic in list(self._appender.topics.items()):
            info = cluster.topics.get(name)
            if info is not None:
                topic.update(info, cluster)
                self._appender.set_topic(topic)

    # A turn.

    def turn(self, now: float) -> tuple[list[Shipment], float]:
        """What goes out now, and when to look again if nothing happens before."""
        cluster = self._surroundings.cluster
        if cluster.version != self._cluster_version:
            self.learn(cluster)
        self._next_at = now + self._delivery_timeout
        self.is_update_wanted = False
        self._expire(now)
        if self._sequences is not None:
            self._sequences.resolve()
            self._sequences.bump_if_wanted()
        shipments: list[Shipment] = []
        for leader, queues in self._ready_by_leader(now).items():
            self._ship(leader, queues, now, shipments)
        if self.is_update_wanted:
            self._surroundings.request_update()
        # While every broker has as many requests as it may have, a full batch is no reason to wake the loop.
        busy = 0
        for count in self._in_flight.values():
            busy += count >= self._max_in_flight
        self._appender.is_hungry = busy < len(cluster.nodes)
        return shipments, self._next_at

    def end_turn(self, sent: int) -> None:
        """The requests of the turn were handed to the connections."""
        made_progress = self._progress or sent > 0
        self._progress = False
        self._appender.turn_ends(made_progress)

    def _look_at(self, at: float) -> None:
        self._next_at = min(self._next_at, at)

    def _ready_by_leader(self, now: float) -> dict[int, list[PartitionQueue]]:
        """The queues whose first batch may go now. Where none is full, the open ones of the same broker go along."""
        ready: dict[int, list[PartitionQueue]] = {}
        lingering: dict[int, list[PartitionQueue]] = {}
        for queue in list(self._appender.active):
            first = queue.first
            if first is None:
                self._appender.retire(queue)
                continue
            if queue.leader == NO_LEADER:
                self.is_update_wanted = True
                continue
            if not self._may_take(queue, first, now):
                continue
            if queue.closed or self.hurries or not self._linger:
                ready.setdefault(queue.leader, []).append(queue)
                continue
            lingering.setdefault(queue.leader, []).append(queue)
        for leader, queues in lingering.items():
            ends = min(queue.first.created_at for queue in queues if queue.first is not None) + self._linger
            if ends <= now:
                ready.setdefault(leader, []).extend(queues)
            else:
                self._look_at(ends)
        return ready

    def _may_take(self, queue: PartitionQueue, first: Batch, now: float) -> bool:
        if self._keeps_order and queue.in_flight:
            return False
        if first.not_before > now and queue.leader_epoch <= first.leader_epoch:
            self._look_at(first.not_before)
            return False
        if self._sequences is not None and not self._sequences.may_take(queue, first):
            return False
        return self._transactions is None or self._transactions.may_send(queue)

    def _ship(self, leader: int, queues: list[PartitionQueue], now: float, shipments: list[Shipment]) -> None:
        """Fill requests while the broker may have more of them."""
        if not self._surroundings.is_ready(leader):
            return
        self._turns += 1
        in_flight = self._in_flight.get(leader, 0)
        while queues and in_flight < self._max_in_flight:
            if len(queues) > 1:
                # No partition is always the last one, for which there is no room.
                start = self._turns % len(queues)
                queues = queues[start:] + queues[:start]
            batches, queues = self._fill(queues, now)
            if not batches:
                break
            in_flight += 1
            shipments.append(self._shipment(leader, batches, now))
        if in_flight:
            self._in_flight[leader] = in_flight

    def _fill(self, queues: list[PartitionQueue], now: float) -> tuple[list[Batch], list[PartitionQueue]]:
        """The batches of one request, and the queues that have more."""
        batches: list[Batch] = []
        left: list[PartitionQueue] = []
        size_bytes = 0
        for queue in queues:
            first = queue.first
            if first is None:
                continue
            if batches and size_bytes + first.wire_bytes > self._config.max_request_size:
                left.append(queue)
                continue
            if first is queue.open:
                self._appender.close_open(queue)
            if not self._is_sealed(first) or queue.closed[0] is not first:
                continue
            taken: Batch = self._appender.take(queue)
            if self._sequences is not None:
                self._sequences.number(queue, taken)
            size_bytes += taken.wire_bytes
            batches.append(taken)
            if not queue.closed:
                self._appender.retire(queue)
            elif not self._keeps_order and self._may_take(queue, queue.closed[0], now):
                left.append(queue)
        return batches, left

    def _is_sealed(self, batch: Batch) -> bool:
        """Whether it is compressed, if it is to be; done here when it is small, asked for otherwise."""
        if not self._compresses or batch.payload is not None:
            return True
        if batch.is_sealing:
            return False
        if batch.payload_bytes > COMPRESS_ON_LOOP_BYTES:
            batch.is_sealing = True
            self.to_compress.append(batch)
            return False
        batch.seal(self._codec, self.level)
        return True

    def _shipment(self, leader: int, batches: list[Batch], now: float) -> Shipment:
        for batch in batches:
            batch.is_in_flight = True
            batch.queue.in_flight += 1
            batch.leader_epoch = batch.queue.leader_epoch
            if not batch.attempts:
                batch.taken_at = now
                self._metrics.batch_taken(batch, now)
        shipment = Shipment(leader, batches, self._appender.topics, self._config, self._codec, now)
        self._large_in_flight += shipment.is_large
        return shipment

    # Answers.

    def answered(self, shipment: Shipment, response: ProduceResponse | None, now: float) -> None:
        """What the broker says; None where it was not asked for an answer (`acks=0`)."""
        self._landed(shipment)
        self._metrics.answered(now - shipment.sent_at)
        if response is None:
            for batch in shipment.batches:
                self._written(batch, -1, -1)
            return
        for batch, answer in shipment.match(response):
            if not batch.is_done:
                self._judge(batch, answer, now)
        for batch in shipment.unsettled():
            self._unanswered(batch, InvalidAnswer("the broker's answer leaves out a partition of the request"), now)

    def failed(self, shipment: Shipment, error: OttlaError, now: float) -> None:
        """No answer: the records may be in the log, or not."""
        self._landed(shipment)
        self._surroundings.request_update()
        for batch in shipment.batches:
            if isinstance(error, BrokerUnavailable | InvalidAnswer):
                self._unanswered(batch, error, now)
            elif not batch.is_done:
                batch.may_be_written = True
                self._give_up(batch, error)

    def unreachable(self, node_id: int, error: OttlaError) -> None:
        """There is no connection. The broker's batches stay, unless another attempt cannot change anything."""
        self._surroundings.request_update()
        for queue in [queue for queue in self._appender.active if queue.leader == node_id]:
            if not isinstance(error, BrokerUnavailable | InvalidAnswer):
                self.fail_all(error, [batch for batch in (*queue.closed, queue.open) if batch is not None])
            elif queue.first is not None:
                queue.first.last_failure = str(error)

    def unanswered(self, shipment: Shipment, error: OttlaError, now: float) -> None:
        """The answer made no sense from some point on: what it did not settle is sent again."""
        for batch in shipment.unsettled():
            self._unanswered(batch, error, now)

    def abandon(self, shipment: Shipment, error: OttlaError) -> None:
        """The answer could not be carried out: what it did not settle may be written, and is not sent again."""
        for batch in shipment.unsettled():
            batch.may_be_written = True
            self._give_up(batch, error)

    def _landed(self, shipment: Shipment) -> None:
        self._progress = True
        self._large_in_flight -= shipment.is_large
        left = self._in_flight[shipment.node_id] - 1
        if left:
            self._in_flight[shipment.node_id] = left
        else:
            del self._in_flight[shipment.node_id]
        for batch in shipment.batches:
            batch.is_in_flight = False
            batch.queue.in_flight -= 1

    def _judge(self, batch: Batch, answer: PartitionProduceResponse, now: float) -> None:
        if not answer.error_code:
            self._written(batch, answer.base_offset, answer.log_append_time_ms)
            return
        code = ErrorCode(answer.error_code)
        if code in UNCERTAIN:
            batch.may_be_written = True
        if code in STALE:
            self._surroundings.request_update()
        if code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(batch)
        elif self._may_retry(batch, code, answer.log_start_offset):
            self._again(batch, code.name, now)
        elif code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._written(batch, -1, -1)
        else:
            error = error_of(answer.error_code, text_of(code, answer.error_message, batch))
            messages = {one.batch_index: one.batch_index_error_message or str(error) for one in answer.record_errors}
            self._give_up(batch, error, record_errors=messages)

    def _may_retry(self, batch: Batch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether to send it again; what has no time left for that is given up in the next turn."""
        if batch.attempts >= self._config.retries:
            return False
        if self._sequences is not None:
            return self._sequences.may_retry(batch, code, log_start_offset)
        return code.retriable

    def _unanswered(self, batch: Batch, error: OttlaError, now: float) -> None:
        if batch.is_done:
            return
        batch.may_be_written = True
        if batch.attempts < self._config.retries:
            self._again(batch, str(error), now)
        else:
            self._give_up(batch, error)

    def _again(self, batch: Batch, reason: str, now: float) -> None:
        batch.attempts += 1
        batch.last_failure = reason
        self._metrics.record_retries += batch.count
        batch.not_before = now + backoff_seconds(self._config, batch.attempts, self._ids)
        logger.debug("%r: attempt %d failed (%s), trying again", batch.queue, batch.attempts, reason)
        batch.queue.put_again(self._appender, batch)

    def _written(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        if batch.is_done:
            return
        if self._sequences is not None:
            self._sequences.written(batch, base_offset)
        size_bytes = batch.size_bytes
        self._metrics.batch_written(batch)
        batch.succeed(base_offset, append_time_ms)
        self._appender.complete(batch, size_bytes)

    def _give_up(self, batch: Batch, error: OttlaError, record_errors: Mapping[int, str] | None = None) -> None:
        code = getattr(error, "code", None)
        if self._sequences is not None:
            if batch.may_be_written:
                self._sequences.gave_up(batch)
            self._sequences.failed(batch, is_surely_absent=not batch.may_be_written, code=code)
        if self._transactions is not None:
            self._transactions.batch_failed(error)
        size_bytes = batch.size_bytes
        self._metrics.record_errors += batch.count
        batch.fail(error, record_errors)
        self._appender.complete(batch, size_bytes)

    def _split(self, batch: Batch) -> None:
        """Too large for the topic: its records go again in smaller batches, under the same sequences."""
        size_bytes = batch.size_bytes
        parts, places = split(batch, self._codec, self._config.batch_size)
        self._metrics.batch_splits += 1
        if self._sequences is not None:
            self._sequences.replace(batch, parts)
        self._appender.complete(batch, size_bytes)
        for part in reversed(parts):
            self._appender.available_bytes -= part.size_bytes
            batch.queue.put_again(self._appender, part)
        batch.move_to(places)

    # Ends.

    def _expire(self, now: float) -> None:
        if now < self._expires_at:
            self._look_at(self._expires_at)
            return
        self._expires_at = now + self._delivery_timeout
        for batch in list(self._appender.incomplete):
            ends = batch.created_at + self._delivery_timeout
            if ends > now:
                self._expires_at = min(self._expires_at, ends)
                continue
            batch.may_be_written |= batch.is_in_flight
            self.remove(batch)
            self._give_up(batch, expired(batch, now))
        self._look_at(self._expires_at)

    def remove(self, batch: Batch) -> None:
        """Take a batch out of its queue, if it is there."""
        queue: PartitionQueue = batch.queue
        if queue.open is batch:
            self._appender.close_open(queue)
        if batch in queue.closed:
            queue.closed.remove(batch)
            self._appender.waiting -= 1

    def fail_all(self, error: OttlaError, batches: Iterable[Batch] | None = None) -> None:
        """Give everything up, or those: the producer closes, or its transaction is aborted."""
        for batch in list(self._appender.incomplete) if batches is None else list(batches):
            self.remove(batch)
            batch.may_be_written |= batch.is_in_flight
            self._give_up(batch, error)
