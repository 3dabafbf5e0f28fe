"""Metadata (key 3): brokers, topics, and who leads each partition.

| version | what changed                                                     |
|---------|------------------------------------------------------------------|
| 0       | no topics named means all topics; from 1 on, null does           |
| 4       | the client may forbid creating the topics it names               |
| 5       | offline replicas (KIP-112)                                       |
| 7       | leader epochs (KIP-320)                                          |
| 8       | authorized operations (KIP-430); 8 to 10 for the cluster too     |
| 9       | flexible                                                         |
| 10, 12  | topic ids, then topics asked for by id (KIP-516)                 |
| 13      | an error of the whole request (KIP-1102)                         |

A topic that is asked for and does not exist is created where `auto.create.topics.enable` and the client allow
it. Unlike Kafka, which sends the client away with an error until it is there, the answer waits for it.
"""

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.image import NO_LEADER, BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.topic_names import INTERNAL_TOPICS, topic_name_problem
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

AUTO_CREATION_CHOICE_SINCE_VERSION = 4
BY_ID_SINCE_VERSION = 12
PARTITIONS_PER_TURN = 500


@serves(MetadataRequest)
async def handle(broker: "Broker", context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    wanted = _wanted(context, request)
    problem = _problem(context, wanted)
    if problem is not None:
        return _refused(wanted or [], problem)
    if wanted is not None and broker.config.auto_create_topics:
        allowed = request.allow_auto_topic_creation or context.api_version < AUTO_CREATION_CHOICE_SINCE_VERSION
        if allowed:
            await _create_missing(broker, context, wanted)
    image = broker.image
    response = MetadataResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            _broker(registration, context.listener)
            for registration in image.brokers.values()
            if registration.endpoint(context.listener) is not None
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    if wanted is None:
        response.topics = [await _topic(image, topic, context.listener) for _, topic in sorted(image.topics.items())]
    else:
        response.topics = [await _one(image, topic, context.listener) for topic in wanted]
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def _wanted(context: RequestContext, request: MetadataRequest) -> list[MetadataRequestTopic] | None:
    """The topics asked for, once each; None for all of them. Where ids are given, names are not looked at."""
    if request.topics is None or (not request.topics and context.api_version == 0):
        return None
    if context.api_version >= BY_ID_SINCE_VERSION:
        by_id = {topic.topic_id: topic for topic in request.topics if topic.topic_id != ZERO_UUID}
        if by_id:
            return list(by_id.values())
    return list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())


def _problem(context: RequestContext, wanted: list[MetadataRequestTopic] | None) -> ErrorCode | None:
    """Why nothing at all is answered: an id in a version without them, or a topic without a name and an id."""
    if context.api_version < BY_ID_SINCE_VERSION:
        if any(topic.topic_id != ZERO_UUID or topic.name is None for topic in wanted or ()):
            return ErrorCode.INVALID_REQUEST
    elif any(topic.topic_id == ZERO_UUID and topic.name is None for topic in wanted or ()):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _refused(wanted: list[MetadataRequestTopic], code: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        error_code=code,
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id) for topic in wanted
        ],
    )


async def _create_missing(broker: "Broker", context: RequestContext, wanted: list[MetadataRequestTopic]) -> None:
    missing = [
        topic.name
        for topic in wanted
        if topic.name is not None
        and topic.topic_id == ZERO_UUID
        and topic.name not in broker.image.topics
        and topic_name_problem(topic.name) is None
    ]
    if missing:
        await broker.create_missing_topics(missing, broker.quotas.charge(context))


def _broker(registration: BrokerRegistration, listener: str) -> MetadataResponseBroker:
    endpoint = registration.endpoint(listener)
    assert endpoint is not None
    return MetadataResponseBroker(
        node_id=registration.node_id, host=endpoint.host, port=endpoint.port, rack=registration.rack
    )


async def _one(image: ClusterImage, wanted: MetadataRequestTopic, listener: str) -> MetadataResponseTopic:
    if wanted.topic_id != ZERO_UUID:
        topic = image.topics_by_id.get(wanted.topic_id)
        if topic is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
        return await _topic(image, topic, listener)
    name = wanted.name or ""
    if topic_name_problem(name) is not None:
        return MetadataResponseTopic(error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, name=name)
    topic = image.topics.get(name)
    if topic is None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name, is_internal=name in INTERNAL_TOPICS
        )
    return await _topic(image, topic, listener)


async def _topic(image: ClusterImage, topic: TopicImage, listener: str) -> MetadataResponseTopic:
    """The loop has its turn where there are very many partitions; the image that they are taken from stays the same."""
    partitions: list[MetadataResponsePartition] = []
    errors: dict[int, ErrorCode] = {}
    for partition in topic.partitions:
        error = errors.get(partition.leader)
        if error is None:
            error = errors[partition.leader] = leader_error(image, partition, listener)
        partitions.append(_partition(partition, error))
        if not len(partitions) % PARTITIONS_PER_TURN:
            await asyncio.sleep(0)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )


def _partition(partition: PartitionImage, error: ErrorCode) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=in_sync(partition),
        offline_replicas=list(partition.offline_replicas),
    )


def in_sync(partition: PartitionImage) -> list[int]:
    """As clients are told: while nobody leads, nobody is in sync with anyone. The image keeps who was."""
    return [] if partition.leader == NO_LEADER else list(partition.isr)


def leader_error(image: ClusterImage, partition: PartitionImage, listener: str) -> ErrorCode:
    """Why the leader cannot be reached through this listener, if so."""
    leader = image.brokers.get(partition.leader)
    if partition.leader == NO_LEADER or leader is None:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if leader.endpoint(listener) is None:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.NONE
