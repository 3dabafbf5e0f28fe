"""DeleteTopics: delete topics and all that is in them.

Version 3 knows TOPIC_DELETION_DISABLED, 5 returns error messages, 6 takes names or ids.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Struct, Uuid, field


class DeleteTopicState(Struct):
    name: str | None = field("6+", nullable="6+", default=None)
    topic_id: Uuid = field("6+")


class DeleteTopicsRequest(Request, key=ApiKey.DELETE_TOPICS, versions=(1, 6), flexible=4):
    topics: list[DeleteTopicState] = field("6+")
    topic_names: list[str] = field("0-5", ignorable=True)
    timeout_ms: Int32 = field("0+")


class DeletableTopicResult(Struct):
    name: str | None = field("0+", nullable="6+")
    topic_id: Uuid = field("6+", ignorable=True)
    error_code: Int16 = field("0+")
    error_message: str | None = field("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, answers=DeleteTopicsRequest):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    responses: list[DeletableTopicResult] = field("0+")
