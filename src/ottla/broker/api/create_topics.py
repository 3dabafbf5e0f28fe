"""CreateTopics (key 19): make topics, or only check that they could be made.

| version | what changed                                                              |
|---------|---------------------------------------------------------------------------|
| 2       | lowest version that Kafka 4 serves                                        |
| 4       | -1 partitions or replicas mean the broker's defaults (KIP-464)            |
| 5       | flexible; the settings of the new topic are in the answer (KIP-525)       |
| 6       | THROTTLING_QUOTA_EXCEEDED above a quota of mutations (KIP-599)            |
| 7       | topic ids (KIP-516)                                                       |

The answer leaves when the topic can be used on this broker, so a client that creates and then writes meets no
unknown topic.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.config_description import describe_topic
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.requests import CreateTopicResult, NewTopic
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


STRICT_QUOTA_SINCE_VERSION = 6


@serves(CreateTopicsRequest)
async def handle(broker: "Broker", context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    if request.timeout_ms <= 0:
        return CreateTopicsResponse(topics=[_timed_out(name) for name in times_named])
    wanted = [_wanted(topic) for topic in request.topics if times_named[topic.name] == 1]
    charge = broker.quotas.charge(context, STRICT_QUOTA_SINCE_VERSION)
    results = await broker.controller.create_topics(wanted, validate_only=request.validate_only, charge=charge)
    if not request.validate_only:
        await broker.image_applied()
    by_name = {result.name: _result(broker, result) for result in results}
    for name, times in times_named.items():
        if times > 1:
            by_name[name] = CreatableTopicResult(
                name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="the topic is named more than once"
            )
    return CreateTopicsResponse(throttle_time_ms=charge.throttle_ms(), topics=[by_name[name] for name in times_named])


def _timed_out(name: str) -> CreatableTopicResult:
    """Who gives no time gets nothing done: Kafka's controller takes up no work whose time is over."""
    return CreatableTopicResult(
        name=name, error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="no time was given to create the topic"
    )


def _wanted(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple((item.partition_index, tuple(item.broker_ids)) for item in topic.assignments),
        configs={config.name: config.value for config in topic.configs},
    )


def _result(broker: "Broker", result: CreateTopicResult) -> CreatableTopicResult:
    if result.error:
        return CreatableTopicResult(name=result.name, error_code=result.error, error_message=result.message, configs=[])
    return CreatableTopicResult(
        name=result.name,
        error_message=None,
        topic_id=result.topic_id,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=result.configs.get(entry.name, entry.value),
                read_only=entry.read_only,
                config_source=entry.config_source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in describe_topic(broker.settings, result.configs)
        ],
    )
