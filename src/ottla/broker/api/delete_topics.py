"""DeleteTopics (key 20): remove topics and their records.

| version | what changed                                                  |
|---------|---------------------------------------------------------------|
| 4       | flexible                                                      |
| 5       | error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599)           |
| 6       | topics by id as well as by name (KIP-516)                     |
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

TOPIC_IDS_SINCE_VERSION = 6
STRICT_QUOTA_SINCE_VERSION = 5


@serves(DeleteTopicsRequest)
async def handle(broker: "Broker", context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    response = DeleteTopicsResponse()
    wanted: list[str | bytes] = []
    if context.api_version < TOPIC_IDS_SINCE_VERSION:
        wanted.extend(request.topic_names)
    else:
        for topic in request.topics:
            if (topic.name is None) == (topic.topic_id == ZERO_UUID):
                response.responses.append(
                    DeletableTopicResult(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        error_code=ErrorCode.INVALID_REQUEST,
                        error_message="a topic is named by its name or by its id, and not by both",
                    )
                )
            else:
                wanted.append(topic.topic_id if topic.name is None else topic.name)
    if request.timeout_ms <= 0:
        response.responses += [_timed_out(asked) for asked in dict.fromkeys(wanted)]
        return response
    charge = broker.quotas.charge(context, STRICT_QUOTA_SINCE_VERSION)
    for result in await broker.controller.delete_topics(wanted, charge):
        response.responses.append(
            DeletableTopicResult(
                name=result.name, topic_id=result.topic_id, error_code=result.error, error_message=result.message
            )
        )
    await broker.image_applied()
    response.throttle_time_ms = charge.throttle_ms()
    return response


def _timed_out(asked: str | bytes) -> DeletableTopicResult:
    """Who gives no time gets nothing done: Kafka's controller takes up no work whose time is over."""
    return DeletableTopicResult(
        name=asked if isinstance(asked, str) else None,
        topic_id=asked if isinstance(asked, bytes) else ZERO_UUID,
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message="no time was given to delete the topic",
    )
