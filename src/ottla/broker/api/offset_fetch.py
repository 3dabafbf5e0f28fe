"""OffsetFetch (key 9): how far groups have read.

| version | what changed                                                                |
|---------|-----------------------------------------------------------------------------|
| 2       | all topics, by null; an error of the whole group                            |
| 5       | leader epochs (KIP-320)                                                     |
| 6       | flexible                                                                    |
| 7       | `require_stable`: UNSTABLE_OFFSET_COMMIT while a transaction is open        |
| 8       | several groups at once (KIP-709)                                            |
| 9       | members of consumer groups say who they are (KIP-848)                       |
| 10      | topics by id (KIP-848)                                                      |

A group that does not exist has no offsets, which is no error.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.api.answering import all_answered, answered
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.group import Committer
from ottla.groups.offsets import FetchedOffset, FetchedTopics
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.protocol.uuids import ZERO_UUID
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

GROUP_ERRORS_SINCE_VERSION = 2
SEVERAL_GROUPS_SINCE_VERSION = 8
TOPIC_IDS_SINCE_VERSION = 10


@serves(OffsetFetchRequest)
def handle(broker: "Broker", context: RequestContext, request: OffsetFetchRequest) -> Promise[OffsetFetchResponse]:
    if context.api_version < SEVERAL_GROUPS_SINCE_VERSION:
        return _one_group(broker, context, request)
    fetch = _group_by_ids if context.api_version >= TOPIC_IDS_SINCE_VERSION else _group_by_names
    groups = [fetch(broker, group, request.require_stable) for group in request.groups]
    return all_answered(groups, lambda answers: OffsetFetchResponse(groups=answers))


def _one_group(broker: "Broker", context: RequestContext, request: OffsetFetchRequest) -> Promise[OffsetFetchResponse]:
    asked = request.topics
    wanted = None if asked is None else [(topic.name, topic.partition_indexes) for topic in asked]
    promise = broker.groups.read(
        request.group_id,
        lambda machine: machine.offsets.fetch(request.group_id, None, wanted, is_stable=request.require_stable),
        allows_empty_id=True,
    )

    def respond(fetched: FetchedTopics) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(name=name, partitions=[_partition(offset) for offset in offsets])
                for name, offsets in fetched
            ]
        )

    def refuse(error: KafkaError) -> OffsetFetchResponse:
        code = _told(error)
        if context.api_version >= GROUP_ERRORS_SINCE_VERSION:
            return OffsetFetchResponse(error_code=code)
        return respond(
            [(topic.name, [FetchedOffset(index, error=code) for index in topic.partition_indexes]) for topic in asked]
            if asked is not None
            else []
        )

    return answered(promise, respond, refuse)


def _partition(offset: FetchedOffset) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=offset.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=offset.error,
    )


def _partitions(offsets: list[FetchedOffset]) -> list[OffsetFetchResponsePartitions]:
    return [
        OffsetFetchResponsePartitions(
            partition_index=offset.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
            error_code=offset.error,
        )
        for offset in offsets
    ]


def _group_by_names(
    broker: "Broker", group: OffsetFetchRequestGroup, is_stable: bool
) -> Promise[OffsetFetchResponseGroup]:
    asked = group.topics
    wanted = None if asked is None else [(topic.name, topic.partition_indexes) for topic in asked]

    def topics(fetched: FetchedTopics) -> list[OffsetFetchResponseTopics]:
        return [OffsetFetchResponseTopics(name=name, partitions=_partitions(offsets)) for name, offsets in fetched]

    return _fetch(broker, group, wanted, is_stable, topics, {})


def _group_by_ids(
    broker: "Broker", group: OffsetFetchRequestGroup, is_stable: bool
) -> Promise[OffsetFetchResponseGroup]:
    image = broker.image
    wanted: list[tuple[str, list[int]]] | None = None
    unknown: list[OffsetFetchResponseTopics] = []
    topic_ids: dict[str, bytes] = {}
    if group.topics is not None:
        wanted = []
        for asked in group.topics:
            topic = image.topics_by_id.get(asked.topic_id)
            if topic is not None:
                topic_ids[topic.name] = topic.topic_id
                wanted.append((topic.name, asked.partition_indexes))
                continue
            refused = [FetchedOffset(index, error=ErrorCode.UNKNOWN_TOPIC_ID) for index in asked.partition_indexes]
            unknown.append(OffsetFetchResponseTopics(topic_id=asked.topic_id, partitions=_partitions(refused)))

    def topics(fetched: FetchedTopics) -> list[OffsetFetchResponseTopics]:
        """Where all are asked for, those of topics that are no more have no id to be told by."""
        found: list[OffsetFetchResponseTopics] = []
        for name, offsets in fetched:
            topic = image.topics.get(name)
            if topic is not None and topic.topic_id != ZERO_UUID:
                found.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=_partitions(offsets)))
        return found + unknown

    return _fetch(broker, group, wanted, is_stable, topics, topic_ids)


def _fetch(
    broker: "Broker",
    group: OffsetFetchRequestGroup,
    wanted: list[tuple[str, list[int]]] | None,
    is_stable: bool,
    topics: Callable[[FetchedTopics], list[OffsetFetchResponseTopics]],
    topic_ids: dict[str, bytes],
) -> Promise[OffsetFetchResponseGroup]:
    is_member = group.member_id is not None or group.member_epoch >= 0
    reader = Committer(group.member_id or "", None, group.member_epoch) if is_member else None
    promise = broker.groups.read(
        group.group_id,
        lambda machine: machine.offsets.fetch(group.group_id, reader, wanted, is_stable=is_stable, topic_ids=topic_ids),
        allows_empty_id=True,
    )
    return answered(
        promise,
        lambda fetched: OffsetFetchResponseGroup(group_id=group.group_id, topics=topics(fetched)),
        lambda error: OffsetFetchResponseGroup(group_id=group.group_id, error_code=_told(error)),
    )


def _told(error: KafkaError) -> ErrorCode:
    """Older consumers give up on COORDINATOR_NOT_AVAILABLE here."""
    return ErrorCode.NOT_COORDINATOR if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE else error.code
