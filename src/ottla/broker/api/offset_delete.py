"""OffsetDelete (key 47): forget the offsets of a group for topics it does not read any more (KIP-496).

| group                                     | answer                                                            |
|-------------------------------------------|-------------------------------------------------------------------|
| not there                                 | GROUP_ID_NOT_FOUND                                                |
| empty                                     | offsets are deleted                                               |
| of consumers, with members                | deleted; GROUP_SUBSCRIBED_TO_TOPIC for topics that they read      |
| of something else, with members           | NON_EMPTY_GROUP                                                   |

An offset that is not there counts as deleted.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.api.answering import answered
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(OffsetDeleteRequest)
def handle(broker: "Broker", context: RequestContext, request: OffsetDeleteRequest) -> Promise[OffsetDeleteResponse]:
    wanted: list[tuple[str, int]] = []
    unknown: list[tuple[str, int]] = []
    for topic in request.topics:
        for partition in topic.partitions:
            place = (topic.name, partition.partition_index)
            (unknown if broker.image.partition(*place) is None else wanted).append(place)
    promise = broker.groups.write(request.group_id, lambda machine: machine.offsets.delete(request.group_id, wanted))
    return answered(
        promise,
        lambda codes: OffsetDeleteResponse(
            topics=_topics([*unknown, *wanted], [*[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(unknown), *codes])
        ),
        lambda error: OffsetDeleteResponse(error_code=error.code),
    )


def _topics(places: Sequence[tuple[str, int]], codes: Sequence[ErrorCode]) -> list[OffsetDeleteResponseTopic]:
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (name, index), code in zip(places, codes, strict=True):
        topic = topics.setdefault(name, OffsetDeleteResponseTopic(name=name))
        topic.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
    return list(topics.values())
