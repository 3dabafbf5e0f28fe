"""OffsetCommit (key 8): store how far a group has read.

| version | what changed                                                              |
|---------|---------------------------------------------------------------------------|
| 2       | a retention time that the client chooses, until version 4                 |
| 6       | leader epochs (KIP-320)                                                   |
| 7       | static members (KIP-345)                                                  |
| 8       | flexible                                                                  |
| 9       | members of consumer groups; GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH        |
| 10      | topics by id (KIP-848)                                                    |

Partitions that do not exist are answered first, as in Kafka, and if no other is left the group is not even looked at.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.api.answering import answered
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.group import Committer
from ottla.groups.offsets import OffsetToCommit
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

TOPIC_IDS_SINCE_VERSION = 10


class _Answer:
    """The response, put together partition by partition."""

    def __init__(self) -> None:
        self.response = OffsetCommitResponse()
        self._topics: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}

    def add(self, topic: OffsetCommitRequestTopic, index: int, code: int) -> None:
        key = (topic.name, topic.topic_id)
        found = self._topics.get(key)
        if found is None:
            found = self._topics[key] = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            self.response.topics.append(found)
        found.partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))


@serves(OffsetCommitRequest)
def handle(
    broker: "Broker", context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Promise[OffsetCommitResponse]:
    version = context.api_version
    image = broker.image
    answer = _Answer()
    topics: list[OffsetCommitRequestTopic] = []
    wanted: list[OffsetToCommit] = []
    for topic in request.topics:
        by_id = version >= TOPIC_IDS_SINCE_VERSION
        known = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id and known is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for partition in topic.partitions:
            index = partition.partition_index
            if known is None or not 0 <= index < len(known.partitions):
                answer.add(topic, index, unknown)
                continue
            topics.append(topic)
            wanted.append(
                OffsetToCommit(
                    known.name,
                    index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                    known.topic_id,
                )
            )
    if not wanted:
        return answer.response
    committer = Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
    promise = broker.groups.write(
        request.group_id,
        lambda machine: machine.offsets.commit(
            request.group_id, committer, wanted, api_version=version, retention_ms=request.retention_time_ms
        ),
        allows_empty_id=True,
    )

    def respond(codes: Sequence[int]) -> OffsetCommitResponse:
        for topic, item, code in zip(topics, wanted, codes, strict=True):
            answer.add(topic, item.partition, code)
        return answer.response

    def refuse(error: KafkaError) -> OffsetCommitResponse:
        return respond([error.code] * len(wanted))

    return answered(promise, respond, refuse)
