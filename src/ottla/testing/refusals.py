"""The answer that refuses everything a request asks for, with the error where its API and version carry it.

| API                                                | where the error is                                         |
|----------------------------------------------------|------------------------------------------------------------|
| one whose answer has an error of its own           | there                                                      |
| Fetch                                              | in each partition of the fetch or of its session, unless   |
|                                                    | the error is one of sessions                               |
| Metadata                                           | in each topic; the brokers are listed all the same         |
| others                                             | in each part of the answer, one for each part that was     |
|                                                    | asked for: topics, partitions, resources, keys, groups     |
| Produce with acks=0                                | nowhere: the connection is closed, as Kafka does           |

The third kind is derived from the declarations of the messages, so an API that is served one day has its place here
already: the parts of the answer are those of the question, and what names a part (`IDENTITIES`) is copied.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ottla.broker.connection import CloseConnection
from ottla.broker.dispatch import RequestContext
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.schema import Field, Struct, StructType

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

MESSAGE = "a fault of the test"
ERRORS = ("error_code", "partition_error_code")

# What names a part of a request; each row lists the names that mean the same.
IDENTITIES = (
    ("partition_index", "partition", "index"),
    ("name", "topic", "topic_name"),
    ("topic_id",),
    ("group_id",),
    ("member_id",),
    ("group_instance_id",),
    ("resource_type",),
    ("resource_name",),
    ("transactional_id",),
    ("producer_id",),
)
SAME_IDENTITY = {name: names for names in IDENTITIES for name in names}

# What an answer with an error says where Kafka's default is not what brokers send.
WITH_AN_ERROR = {"base_offset": -1, "producer_epoch": -1, "node_id": -1, "port": -1}

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
SESSIONS_SINCE_VERSION = 7
ALL_TOPICS_VERSION = 0
NO_NAMES_SINCE_VERSION = 12


def refuse(broker: "Broker", context: RequestContext, request: Request, code: ErrorCode) -> Response:
    """The answer to `request` that has `code` in all its parts."""
    special = _SPECIAL.get(type(request))
    if special is not None:
        return special(broker, context, request, code)
    return refuse_all_parts(request, context.api_version, code)


def refuse_all_parts(request: Request, version: int, code: ErrorCode) -> Response:
    response = request.RESPONSE()
    _refuse(response, request, version, code)
    return response


def can_refuse(kind: StructType, version: int) -> bool:
    """Whether an answer of this kind, or a part of it, carries an error in this version."""
    fields = [one for one in kind.FIELDS if version in one.versions]
    return any(one.name in ERRORS or _is_refusable_array(one, version) for one in fields)


def _is_refusable_array(one: Field, version: int) -> bool:
    return one.is_array and isinstance(one.type, StructType) and can_refuse(one.type, version)


def _refuse(answer: Struct, asked: object, version: int, code: ErrorCode) -> None:
    fields = {one.name: one for one in type(answer).FIELDS if version in one.versions}
    if not fields.keys().isdisjoint(ERRORS):
        values = {**dict.fromkeys(ERRORS, int(code)), "error_message": MESSAGE, **WITH_AN_ERROR}
        for name in fields.keys() & values.keys():
            setattr(answer, name, values[name])
        return
    for name, one in fields.items():
        if _is_refusable_array(one, version):
            parts = [_refused_part(one.type, source, version, code) for source in _parts(asked, version)]
            setattr(answer, name, parts)


def _parts(asked: object, version: int) -> Iterator[object]:
    """What was asked for one by one: the structs in the lists of a struct, or the names and numbers in them.

    A question without any list has one part, itself.
    """
    fields = type(asked).FIELDS if isinstance(asked, Struct) else ()
    lists = [one for one in fields if version in one.versions and one.is_array]
    of_structs = [one for one in lists if isinstance(one.type, StructType)]
    for one in of_structs or lists:
        yield from getattr(asked, one.name) or ()
    if not lists:
        yield asked


def _refused_part(kind: Any, asked: object, version: int, code: ErrorCode) -> Struct:
    part: Struct = kind()
    fields = [one for one in kind.FIELDS if version in one.versions]
    if isinstance(asked, Struct):
        for one in fields:
            names = [name for name in SAME_IDENTITY.get(one.name, ()) if getattr(asked, name, None) is not None]
            if names:
                setattr(part, one.name, getattr(asked, one.name if one.name in names else names[0]))
    else:
        # A bare name or number: the first field that could hold it is the one it names.
        for one in fields:
            if one.name not in ERRORS and isinstance(getattr(part, one.name), type(asked)):
                setattr(part, one.name, asked)
                break
    _refuse(part, asked, version, code)
    return part


# The APIs that need to know more than the question


def _refuse_produce(broker: "Broker", context: RequestContext, request: ProduceRequest, code: ErrorCode) -> Response:
    if request.acks == 0:
        raise CloseConnection(f"a batch sent with acks=0 was refused: {MESSAGE}: {code.name}")
    return refuse_all_parts(request, context.api_version, code)


def _refuse_fetch(broker: "Broker", context: RequestContext, request: FetchRequest, code: ErrorCode) -> Response:
    """The session goes on as if a partition had failed by itself: the next good answer is news again."""
    if code in SESSION_ERRORS and context.api_version >= SESSIONS_SINCE_VERSION:
        return FetchResponse(error_code=code)
    try:
        fetch = broker.fetch_sessions.context(request, context.api_version)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    failed = [
        (
            target,
            PartitionData(
                partition_index=target.request.partition,
                error_code=code,
                high_watermark=-1,
                aborted_transactions=None,
                records=b"",
            ),
        )
        for target in fetch.targets
    ]
    topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
    for target, answer in fetch.select(failed):
        key = (target.topic, target.topic_id)
        topic = topics.setdefault(key, FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id))
        topic.partitions.append(answer)
    return FetchResponse(session_id=fetch.session_id, responses=list(topics.values()))


def _refuse_metadata(broker: "Broker", context: RequestContext, request: MetadataRequest, code: ErrorCode) -> Response:
    image = broker.image
    response = MetadataResponse(cluster_id=image.cluster_id, controller_id=image.controller_id)
    for registration in image.brokers.values():
        endpoint = registration.endpoint(context.listener)
        if endpoint is not None:
            response.brokers.append(
                MetadataResponseBroker(
                    node_id=registration.node_id, host=endpoint.host, port=endpoint.port, rack=registration.rack
                )
            )
    wants_all = request.topics is None or (not request.topics and context.api_version == ALL_TOPICS_VERSION)
    asked: list[tuple[str | None, bytes]]
    if wants_all:
        asked = [(topic.name, topic.topic_id) for _, topic in sorted(image.topics.items())]
    else:
        no_name = None if context.api_version >= NO_NAMES_SINCE_VERSION else ""
        asked = [(topic.name or no_name, topic.topic_id) for topic in request.topics or ()]
    response.topics = [MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id) for name, topic_id in asked]
    return response


def _refuse_descriptions(
    broker: "Broker", context: RequestContext, request: DescribeTopicPartitionsRequest, code: ErrorCode
) -> Response:
    """No topics named means all of them."""
    names = [topic.name for topic in request.topics] or sorted(broker.image.topics)
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=name) for name in names]
    )


_SPECIAL: dict[type[Request], Callable[["Broker", RequestContext, Any, ErrorCode], Response]] = {
    ProduceRequest: _refuse_produce,
    FetchRequest: _refuse_fetch,
    MetadataRequest: _refuse_metadata,
    DescribeTopicPartitionsRequest: _refuse_descriptions,
}
