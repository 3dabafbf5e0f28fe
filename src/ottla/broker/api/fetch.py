"""Fetch (key 1): read batches from partitions.

| version | what changed                                           |
|---------|--------------------------------------------------------|
| 4       | isolation level, record batch v2 (KIP-98)              |
| 5       | log start offset (KIP-107)                             |
| 7       | fetch sessions (KIP-227)                               |
| 9       | the client's leader epoch is checked (KIP-320)         |
| 11      | rack and preferred read replica (KIP-392)              |
| 12      | flexible; diverging epochs (KIP-595)                   |
| 13      | topics by id (KIP-516)                                 |
| 15      | the replica's state as a tagged field (KIP-903)        |
| 16      | the current leader with an error (KIP-951)             |

No record is read here: what goes into the answer are ranges of segment files, which the server hands to
`sendfile`. A fetch that finds less than `min_bytes` waits, for `max_wait_ms` at most, for the partitions to grow.
The first partition with anything to give gives at least one whole batch, whatever the limits say, so that a
large batch never blocks its readers. What a produced batch brings to its end is answered before the producer is
(`broker.due_answers`).

A reader of committed records gets batches below the last stable offset, with the transactions among them that were
aborted: it leaves their records out by itself. It waits for that offset to move, not for the log to grow.

A consumer that is above its quota gets an empty answer and the time to wait (KIP-219); what was read for it is read
again when it comes back.
"""

import logging
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.broker.fetch_sessions import FetchContext, FetchTarget
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from ottla.replication.partition import NO_EPOCH, Partition
from ottla.replication.waiting import FetchWait
from ottla.runtime import FileRange
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.quotas.metering import RequestMeter

logger = logging.getLogger(__name__)

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LEADER_HINT_SINCE_VERSION = 16
TOPIC_IDS_SINCE_VERSION = 13
REPLICA_STATE_SINCE_VERSION = 15
NO_RECORDS = b""

# Errors that a client has to expect; as in Kafka, only others count as failed requests.
EXPECTED_ERRORS = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)

UNKNOWN_PARTITION_ERRORS = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

# Answers share these instead of having their own; they are replaced, never changed.
NO_DIVERGING_EPOCH = EpochEndOffset()
NO_LEADER = LeaderIdAndEpoch()
NO_SNAPSHOT = SnapshotId()

Answers = list[tuple[FetchTarget, PartitionData]]


@serves(FetchRequest, abandon_on_close=True)
def handle(broker: "Broker", context: RequestContext, request: FetchRequest) -> FetchResponse | Promise[FetchResponse]:
    replica_id = (
        request.replica_state.replica_id if context.api_version >= REPLICA_STATE_SINCE_VERSION else request.replica_id
    )
    if not READ_UNCOMMITTED <= request.isolation_level <= READ_COMMITTED:
        return _unknown_isolation_level(context, request)
    try:
        fetch = broker.fetch_sessions.context(request, context.api_version)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    read = _Read(broker, context, request, fetch, replica_id)
    answers = read.all_partitions()
    if read.may_answer_now():
        return read.response(answers)
    return read.answer_later()


def _unknown_isolation_level(context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Clients before topic ids look for errors at partitions only, so each of them gets it, as from Kafka."""
    response = FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, session_id=request.session_id)
    if context.api_version < TOPIC_IDS_SINCE_VERSION:
        response.responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=wanted.partition,
                        error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
                        high_watermark=-1,
                        records=NO_RECORDS,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return response


class _Read:
    """One fetch request being answered: reads once, and once more if it had to wait, which is not counted again."""

    def __init__(
        self, broker: "Broker", context: RequestContext, request: FetchRequest, fetch: FetchContext, replica_id: int
    ) -> None:
        self._broker = broker
        self._context = context
        self._request = request
        self._fetch = fetch
        self._replica_id = replica_id
        self._by_id = context.api_version >= TOPIC_IDS_SINCE_VERSION
        self._size_bytes = 0
        self._found: list[tuple[Partition, int]] = []
        self._urgent = False
        self._counts = 1
        self._max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
        self._min_bytes = request.min_bytes
        self._is_for_committed = request.isolation_level == READ_COMMITTED and replica_id < 0
        if context.meter is not None:
            self._limit_to_quota(context.meter)

    def _limit_to_quota(self, meter: "RequestMeter") -> None:
        """Never read more than a client may ever get at once; other brokers may get everything."""
        if self._replica_id >= 0:
            meter.is_charged = True
            return
        self._max_bytes = int(min(self._max_bytes, meter.most_to_fetch()))
        self._min_bytes = min(self._min_bytes, self._max_bytes)

    def may_answer_now(self) -> bool:
        return (
            self._urgent
            or self._size_bytes >= self._min_bytes
            or self._request.max_wait_ms <= 0
            or not self._fetch.targets
        )

    def answer_later(self) -> Promise[FetchResponse]:
        """Methods are told, no functions of this one: compiled, those would share what only the collector can free."""
        self._counts = 0
        self._wait = FetchWait(
            self._partitions(),
            self._min_bytes - self._size_bytes,
            self._request.max_wait_ms / 1000,
            self._is_for_committed,
        )
        self._answer: Promise[FetchResponse] = Promise()
        self._wait.over.add_done_callback(self._ended)
        self._answer.add_done_callback(self._abandoned)
        return self._answer

    def _ended(self, over: Promise[None]) -> None:
        if not over.cancelled():
            self._broker.due_answers.add(self._give)

    def _give(self) -> None:
        if self._answer.done():
            return
        try:
            response = self.response(self.all_partitions())
        except Exception as error:
            self._answer.reject(error)
        else:
            self._answer.resolve(response)

    def _abandoned(self, answer: Promise[FetchResponse]) -> None:
        if answer.cancelled():
            self._wait.over.cancel()

    def _partitions(self) -> list[Partition]:
        return [
            self._broker.replicas.partition(self._name(target), target.request.partition)
            for target in self._fetch.targets
        ]

    def _name(self, target: FetchTarget) -> str:
        if not self._by_id:
            return target.topic
        name = self._broker.replicas.topic_name(target.topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        return name

    def all_partitions(self) -> Answers:
        """Read every partition of the fetch, within the limits on bytes."""
        self._size_bytes = 0
        self._found = []
        left_bytes = self._max_bytes
        answers: Answers = []
        for target in self._fetch.targets:
            answers.append((target, self._one_partition(target, left_bytes)))
            left_bytes = max(0, self._max_bytes - self._size_bytes)
        return answers

    def _one_partition(self, target: FetchTarget, left_bytes: int) -> PartitionData:
        wanted = target.request
        answer = PartitionData(
            partition_index=wanted.partition,
            high_watermark=-1,
            diverging_epoch=NO_DIVERGING_EPOCH,
            current_leader=NO_LEADER,
            snapshot_id=NO_SNAPSHOT,
            aborted_transactions=None,
            records=NO_RECORDS,
        )
        partition: Partition | None = None
        try:
            partition = self._broker.replicas.partition(self._name(target), wanted.partition)
            partition.traffic.fetch_requests += self._counts
            partition.check_leader(max(NO_EPOCH, wanted.current_leader_epoch))
            if self._replica_id >= 0:
                raise KafkaError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self._replica_id} is no replica of {partition}"
                )
            offset = wanted.fetch_offset
            if wanted.last_fetched_epoch >= 0:
                answer.diverging_epoch = self._diverging(partition, wanted.last_fetched_epoch, offset)
            if answer.diverging_epoch is NO_DIVERGING_EPOCH:
                max_bytes = min(wanted.partition_max_bytes, left_bytes)
                if self._is_for_committed:
                    found = self._read_committed(partition, offset, max(0, max_bytes), answer)
                else:
                    found = partition.read(offset, max(0, max_bytes), min_one_batch=not self._size_bytes)
                if found is not None:
                    if max_bytes < 0:
                        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"at most {max_bytes} bytes cannot be read")
                    answer.records = found
                    self._size_bytes += found.length
                    self._found.append((partition, found.length))
            else:
                self._urgent = True
            answer.high_watermark = partition.high_watermark
            answer.last_stable_offset = partition.last_stable_offset
            answer.log_start_offset = partition.log.log_start_offset
            if self._is_for_committed and answer.aborted_transactions is None:
                answer.aborted_transactions = []
        except KafkaError as error:
            if partition is not None and error.code not in EXPECTED_ERRORS:
                partition.traffic.failed_fetch_requests += 1
            self._fail(answer, error.code)
        except OSError as error:
            logger.error("%s-%d cannot be read: %s", target.topic, wanted.partition, error)
            self._fail(answer, ErrorCode.KAFKA_STORAGE_ERROR)
        return answer

    def _read_committed(
        self, partition: Partition, offset: int, max_bytes: int, answer: PartitionData
    ) -> FileRange | None:
        found, aborted = partition.read_committed(offset, max_bytes, min_one_batch=not self._size_bytes)
        answer.aborted_transactions = [
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in aborted
        ]
        return found

    def _fail(self, answer: PartitionData, code: ErrorCode) -> None:
        self._urgent = True
        answer.error_code = code
        answer.records = NO_RECORDS
        answer.aborted_transactions = None
        if code in UNKNOWN_PARTITION_ERRORS:
            answer.aborted_transactions = []

    @staticmethod
    def _diverging(partition: Partition, last_fetched_epoch: int, fetch_offset: int) -> EpochEndOffset:
        """Where the reader's log left ours, if the epoch it read last ended earlier here than it thinks."""
        epoch, end_offset = partition.log.leader_epochs.end_offset_for(last_fetched_epoch)
        if end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} never was in epoch {last_fetched_epoch}")
        if epoch == last_fetched_epoch and end_offset >= fetch_offset:
            return NO_DIVERGING_EPOCH
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)

    def response(self, answers: Answers) -> FetchResponse:
        meter = self._context.meter
        if meter is not None and not meter.is_charged:
            complete = self._assembled(self._fetch.preview(answers))
            throttle_time_ms = meter.charge_fetch(complete, self._context.api_version)
            if throttle_time_ms > 0:
                session_id = self._broker.fetch_sessions.withhold(self._fetch)
                return FetchResponse(session_id=session_id, throttle_time_ms=throttle_time_ms)
        for partition, size_bytes in self._found:
            partition.traffic.bytes_out += size_bytes
        return self._assembled(self._fetch.select(answers))

    def _assembled(self, answers: Answers) -> FetchResponse:
        response = FetchResponse(session_id=self._fetch.session_id)
        topics: dict[str | bytes, FetchableTopicResponse] = {}
        for target, answer in answers:
            key = target.topic_id if self._by_id else target.topic
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id)
                response.responses.append(topic)
            topic.partitions.append(answer)
            if answer.error_code:
                self._hint_leader(target, answer, response)
        return response

    def _hint_leader(self, target: FetchTarget, answer: PartitionData, response: FetchResponse) -> None:
        if self._context.api_version < LEADER_HINT_SINCE_VERSION or answer.error_code not in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        ):
            return
        leader = self._broker.leader_of(self._name(target), answer.partition_index, self._context.listener)
        if leader is None:
            return
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.leader_epoch)
        known = self._replica_id >= 0 or any(endpoint.node_id == leader.node_id for endpoint in response.node_endpoints)
        if not known:
            response.node_endpoints.append(
                NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port, rack=leader.rack)
            )
