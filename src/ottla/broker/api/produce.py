"""Produce (key 0): append batches to partitions.

Versions 3 to 13 are answered; 0 to 2 are advertised because librdkafka takes a broker that does not offer
them for one without compression, and are refused when they come.

| version | what changed                                                    |
|---------|-----------------------------------------------------------------|
| 3       | record batch v2 only; transactional id (KIP-98)                 |
| 7       | zstd (KIP-110)                                                  |
| 8       | error message and the records at fault (KIP-467)                |
| 9       | flexible                                                        |
| 10      | the current leader with an error (KIP-951)                      |
| 11      | errors after which a transaction can be aborted (KIP-890)       |
| 12      | the partitions of a transaction are added by writing (KIP-890)  |
| 13      | topics by id (KIP-516)                                          |

The hot path: a request is decoded to views of the receive buffer, each partition's batch is checked by its
header and CRC, stamped in place and written to the page cache, and the answer is there before the next frame
is looked at. Only a full segment, a flush or a lagging replica makes an answer wait.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.connection import CloseConnection
from ottla.broker.dispatch import RequestContext, serves
from ottla.broker.verification import NotVerified, append_verified, header_of
from ottla.cluster.topic_names import INTERNAL_TOPICS
from ottla.log.append_info import AppendInfo
from ottla.log.refused_records import RefusedRecords
from ottla.log.validation import NotOneBatch
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.uuids import ZERO_UUID
from ottla.records import Codec, UnsupportedMagic
from ottla.replication.partition import ACKS_ALL, Partition

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)

ZSTD_SINCE_VERSION = 7
TOPIC_IDS_SINCE_VERSION = 13
LEADER_HINT_SINCE_VERSION = 10
MAGIC_AT, MAGIC = 16, 2
# How Kafka's tools that may write into the topics of brokers call themselves.
ADMIN_CLIENT_ID = "__admin_client"
ATTRIBUTES_AT, CODEC_BITS, TRANSACTIONAL_BIT = 22, 0x07, 0x10

# Refusals that a client has to expect; as in Kafka, only others count as failed requests.
EXPECTED_ERRORS = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)

# Answers share these instead of having their own; they are replaced, never changed.
NO_LEADER = LeaderIdAndEpoch()
NO_RECORD_ERRORS: list[BatchIndexAndErrorMessage] = []

Waiting = tuple[
    PartitionProduceResponse, Partition, AppendInfo | None, asyncio.Future[AppendInfo] | asyncio.Future[None]
]


@serves(ProduceRequest, advertised_min_version=0)
def handle(
    broker: "Broker", context: RequestContext, request: ProduceRequest
) -> ProduceResponse | asyncio.Future[ProduceResponse | None] | None:
    response = ProduceResponse()
    waiting: list[Waiting] = []
    by_id = context.api_version >= TOPIC_IDS_SINCE_VERSION
    topics = request.topic_data
    refusal: KafkaError | None = None
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = _each_once(topics, by_id)
        refusal = _refusal(request, topics)
    for topic in topics:
        name = broker.replicas.topic_name(topic.topic_id) if by_id else topic.name
        answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        for data in topic.partition_data:
            answer = PartitionProduceResponse(
                index=data.index, base_offset=-1, record_errors=NO_RECORD_ERRORS, current_leader=NO_LEADER
            )
            answered.partition_responses.append(answer)
            try:
                if refusal is not None:
                    raise refusal
                if name is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
                _append(broker, context, request, name, data, answer, waiting)
            except KafkaError as error:
                _refuse(answer, error)
                _hint_leader(broker, context, name, answer, response)
            except OSError as error:
                logger.error("%s-%d cannot be written: %s", name, data.index, error)
                _refuse(answer, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused the write: {error}"))
        response.responses.append(answered)
    if waiting:
        return asyncio.ensure_future(_finish(request, response, waiting))
    return _answer(request, response)


def _each_once(topics: list[TopicProduceData], by_id: bool) -> list[TopicProduceData]:
    """Of a partition that is named twice the last batch counts, as in Kafka; a topic without partitions is left out."""
    distinct: dict[str | bytes, dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = distinct.setdefault(topic.topic_id if by_id else topic.name, {})
        for data in topic.partition_data:
            partitions[data.index] = data
    named = sum([len(topic.partition_data) or 1 for topic in topics])
    if len(distinct) == len(topics) and sum(map(len, distinct.values())) == named:
        return topics
    return [
        TopicProduceData(
            name="" if isinstance(key, bytes) else key,
            topic_id=key if isinstance(key, bytes) else ZERO_UUID,
            partition_data=list(partitions.values()),
        )
        for key, partitions in distinct.items()
        if partitions
    ]


def _append(
    broker: "Broker",
    context: RequestContext,
    request: ProduceRequest,
    topic: str,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    waiting: list[Waiting],
) -> None:
    acks = request.acks
    if not ACKS_ALL <= acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {acks}")
    partition = broker.replicas.partition(topic, data.index)
    if topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by brokers only")
    records = data.records
    if not isinstance(records, memoryview) or not len(records):
        raise KafkaError(ErrorCode.INVALID_RECORD, "a produce request needs one record batch for each partition")
    header = None
    if len(records) > ATTRIBUTES_AT and records[MAGIC_AT] == MAGIC:
        attributes = records[ATTRIBUTES_AT]
        _check_attributes(context.api_version, request, attributes)
        if attributes & TRANSACTIONAL_BIT:
            header = header_of(records)
    partition.traffic.produce_requests += 1
    try:
        if header is None or request.transactional_id is None:
            info = partition.append(records, acks)
        else:
            name, version = request.transactional_id, context.api_version
            info = append_verified(broker, partition, header, records, acks, name, version)
    except KafkaError as error:
        if error.code in EXPECTED_ERRORS:
            raise
        _count_failure(partition, error)
        _refuse(answer, error, partition)
        return
    if isinstance(info, asyncio.Future):
        waiting.append((answer, partition, None, info))
        return
    _accept(answer, info)
    acknowledgement = partition.acknowledgement(info, acks)
    if acknowledgement is not None:
        waiting.append((answer, partition, info, acknowledgement))


def _refusal(request: ProduceRequest, topics: list[TopicProduceData]) -> KafkaError | None:
    """Why none of several batches is appended: transactional ones without an id, or of more than one producer."""
    producers: set[tuple[int, int]] = set()
    for topic in topics:
        for data in topic.partition_data:
            records = data.records
            if (
                isinstance(records, memoryview)
                and len(records) > ATTRIBUTES_AT
                and records[MAGIC_AT] == MAGIC
                and records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT
            ):
                if request.transactional_id is None:
                    return _lacks_id()
                header = header_of(records)
                if header is not None and header.producer_id >= 0:
                    producers.add((header.producer_id, header.producer_epoch))
    if len(producers) > 1:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the batches of one transaction came from more than one producer"
        )
    return None


def _lacks_id() -> KafkaError:
    return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch needs a transactional id")


def _check_attributes(api_version: int, request: ProduceRequest, attributes: int) -> None:
    """What a request cannot carry, whatever the partition says of it."""
    if attributes & TRANSACTIONAL_BIT and request.transactional_id is None:
        raise _lacks_id()
    codec = attributes & CODEC_BITS
    if api_version < ZSTD_SINCE_VERSION and codec >= Codec.ZSTD:
        if codec == Codec.ZSTD:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or newer")
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"a codec from 0 to {Codec.ZSTD} expected, {codec} came")


def _count_failure(partition: Partition, error: KafkaError) -> None:
    if error.code not in EXPECTED_ERRORS:
        partition.traffic.failed_produce_requests += 1


def _accept(answer: PartitionProduceResponse, info: AppendInfo) -> None:
    answer.base_offset = info.first_offset
    answer.log_append_time_ms = info.log_append_time
    answer.log_start_offset = info.log_start_offset


def _refuse(answer: PartitionProduceResponse, error: KafkaError, partition: Partition | None = None) -> None:
    """Where the partition itself refused, the answer says where its log starts, unless Kafka's does not either."""
    answer.error_code = error.code
    answer.error_message = str(error)
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1
    if isinstance(error, RefusedRecords):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record.batch_index, batch_index_error_message=record.message)
            for record in error.records
        ]
    if partition is None or isinstance(error, NotOneBatch | UnsupportedMagic | NotVerified):
        return
    if error.code not in EXPECTED_ERRORS:
        answer.log_start_offset = partition.log.log_start_offset


async def _finish(request: ProduceRequest, response: ProduceResponse, waiting: list[Waiting]) -> ProduceResponse | None:
    """Wait for rolls, flushes and replicas, for the request's timeout at most."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + max(request.timeout_ms, 0) / 1000
    for answer, partition, info, future in waiting:
        try:
            if info is None:
                info = await _queued_append(future, answer)
                acknowledgement = partition.acknowledgement(info, request.acks)
                if acknowledgement is None:
                    continue
                future = acknowledgement
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(future)
        except TimeoutError:
            _refuse(answer, KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the records are not on all in-sync replicas yet"))
        except KafkaError as error:
            if info is None:
                _count_failure(partition, error)
            _refuse(answer, error, partition if info is None else None)
        except OSError as error:
            logger.error("%s cannot be written: %s", partition, error)
            _refuse(answer, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused the write: {error}"))
    return _answer(request, response)


async def _queued_append(
    future: asyncio.Future[AppendInfo] | asyncio.Future[None], answer: PartitionProduceResponse
) -> AppendInfo:
    info = await future
    assert info is not None
    _accept(answer, info)
    return info


def _answer(request: ProduceRequest, response: ProduceResponse) -> ProduceResponse | None:
    if request.acks != 0:
        return response
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                # The client asked for no answers: hanging up is the only way left to tell it, as Kafka does.
                raise CloseConnection(f"a batch sent with acks=0 was refused: {answer.error_message}")
    return None


def _hint_leader(
    broker: "Broker",
    context: RequestContext,
    topic: str | None,
    answer: PartitionProduceResponse,
    response: ProduceResponse,
) -> None:
    """Tell a client that came to the wrong broker where the leader is."""
    if context.api_version < LEADER_HINT_SINCE_VERSION or answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return
    leader = broker.leader_of(topic, answer.index, context.listener)
    if leader is None:
        return
    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.leader_epoch)
    if all(endpoint.node_id != leader.node_id for endpoint in response.node_endpoints):
        response.node_endpoints.append(
            NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port, rack=leader.rack)
        )
