"""How far groups have read: look at it, change it, forget it."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Answer, Call, Outcomes, as_partitions, by_topic
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.client.errors import InvalidRequest, OttlaError
from ottla.client.network import CoordinatorKind
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.protocol.message import Request
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

NO_OFFSET = -1
# From version 10 on OffsetFetch and OffsetCommit have ids in place of names. Offsets are kept under names, and one may
# want those of a topic that is no more.
LAST_BY_NAME = 9

Offsets = dict[TopicPartition, OffsetAndMetadata]


class GroupOffsetsAdmin(AdminPart):
    async def list_group_offsets(
        self,
        group_ids: str | Iterable[str],
        *,
        partitions: Iterable[tuple[str, int]] | None = None,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> Results[str, Offsets]:
        """The committed offsets of each group, of all partitions that have one where none are named; a partition
        without one is left out, and so is everything of a group that does not exist. With `require_stable`, wait for
        transactions that are about to commit some."""
        call = self._call(timeout)
        topics = None
        if partitions is not None:
            topics = [
                OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                for name, numbers in by_topic(as_partitions(partitions)).items()
            ]

        async def ask(node_id: int, ids: Sequence[str]) -> Outcomes[str, Offsets]:
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics) for group_id in ids],
                require_stable=require_stable,
            )
            answer = await call.to(node_id, request, OffsetFetchResponse, LAST_BY_NAME)
            return {group.group_id: _offsets(group) for group in answer.groups}

        async def attempt(ids: Sequence[str]) -> Outcomes[str, Offsets]:
            return await call.by_coordinator(CoordinatorKind.GROUP, ids, ask)

        return await call.settle([group_ids] if isinstance(group_ids, str) else group_ids, attempt)

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[tuple[str, int], int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Set committed offsets. While consumers are in the group this is refused with UNKNOWN_MEMBER_ID: they would
        go on where they are, and commit over it. A group that does not exist comes to be."""
        wanted = {
            TopicPartition(*partition): OffsetAndMetadata(new) if isinstance(new, int) else new
            for partition, new in offsets.items()
        }
        negative = sorted(partition for partition, new in wanted.items() if new.offset < 0)
        if negative:
            raise InvalidRequest(f"{negative[0]}: an offset is 0 or above, not {wanted[negative[0]].offset}")
        call = self._call(timeout)

        async def ask(partitions: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
            request = OffsetCommitRequest(
                group_id=group_id, topics=_commits({partition: wanted[partition] for partition in partitions})
            )
            answer = await _of_group(call, group_id, request, OffsetCommitResponse)
            return {
                (key := TopicPartition(topic.name, result.partition_index)): failure(
                    result.error_code, None, f"group {group_id}, {key}"
                )
                if result.error_code
                else None
                for topic in answer.topics
                for result in topic.partitions
            }

        return await call.settle(wanted, lambda partitions: call.in_pieces(partitions, ask))

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Forget committed offsets. Refused with GROUP_SUBSCRIBED_TO_TOPIC while members read the topic."""
        call = self._call(timeout)

        async def ask(piece: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
            request = OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=name,
                        partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
                    )
                    for name, numbers in by_topic(piece).items()
                ],
            )
            answer = await _of_group(call, group_id, request, OffsetDeleteResponse)
            if answer.error_code:
                raise failure(answer.error_code, None, f"group {group_id}")
            return {
                (key := TopicPartition(topic.name, result.partition_index)): failure(
                    result.error_code, None, f"group {group_id}, {key}"
                )
                if result.error_code
                else None
                for topic in answer.topics
                for result in topic.partitions
            }

        return await call.settle(as_partitions(partitions), lambda keys: call.in_pieces(keys, ask))


def _offsets(group: OffsetFetchResponseGroup) -> Offsets | OttlaError:
    if group.error_code:
        return failure(group.error_code, None, f"group {group.group_id}")
    found: Offsets = {}
    for topic in group.topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                return failure(partition.error_code, None, f"group {group.group_id}, {key}")
            if partition.committed_offset != NO_OFFSET:
                found[key] = OffsetAndMetadata(
                    partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
                )
    return {key: found[key] for key in sorted(found)}


def _commits(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> list[OffsetCommitRequestTopic]:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), new in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=new.offset,
                committed_leader_epoch=new.leader_epoch,
                committed_metadata=new.metadata,
            )
        )
    return [OffsetCommitRequestTopic(name=name, partitions=partitions) for name, partitions in topics.items()]


async def _of_group(call: Call, group_id: str, request: Request, answer: type[Answer]) -> Answer:
    """The answer of the group's coordinator to one request; what it meets is raised."""

    async def ask(node_id: int, ids: Sequence[str]) -> Outcomes[str, Answer]:
        return {group_id: await call.to(node_id, request, answer, LAST_BY_NAME)}

    outcome = (await call.by_coordinator(CoordinatorKind.GROUP, [group_id], ask))[group_id]
    if isinstance(outcome, OttlaError):
        raise outcome
    return outcome
