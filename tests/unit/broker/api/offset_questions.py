"""Questions about groups and their offsets, with the parts that rarely matter filled in."""

from collections.abc import Mapping, Sequence

from tests.waiting import tries
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
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
    OffsetFetchResponsePartitions,
)

COMMIT_BY_NAME, FETCH_BY_NAME, FETCH_OF_ONE_GROUP = 9, 9, 7
GROUP_KEY = 0


def find_coordinator(client: WireClient, group_id: str) -> None:
    """Wait until there is a coordinator of the group, and it has loaded what there is of it."""
    for _ in tries():
        answer = client.ask(FindCoordinatorRequest(key=group_id, key_type=GROUP_KEY), FindCoordinatorResponse, 3)
        if answer.error_code == ErrorCode.NONE and not fetch_group(client, group_id, {}).error_code:
            return
    raise AssertionError(f"nobody coordinates {group_id}: {ErrorCode(answer.error_code).name}")


def commit_request(group_id: str, offsets: Mapping[str, Mapping[int, int]], **fields: object) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=f"at {offset}"
                    )
                    for index, offset in partitions.items()
                ],
            )
            for topic, partitions in offsets.items()
        ],
        **fields,  # type: ignore[arg-type]  # tests set the fields of the request
    )


def commit(
    client: WireClient,
    group_id: str,
    offsets: Mapping[str, Mapping[int, int]],
    version: int = COMMIT_BY_NAME,
    **fields: object,
) -> dict[tuple[str, int], ErrorCode]:
    return commit_codes(client.ask(commit_request(group_id, offsets, **fields), OffsetCommitResponse, version))


def commit_codes(answer: OffsetCommitResponse) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def fetch_group(
    client: WireClient, group_id: str, partitions: Mapping[str, Sequence[int]] | None, *, require_stable: bool = False
) -> OffsetFetchResponseGroup:
    topics = (
        None
        if partitions is None
        else [
            OffsetFetchRequestTopics(name=topic, partition_indexes=list(indexes))
            for topic, indexes in partitions.items()
        ]
    )
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)], require_stable=require_stable
    )
    (group,) = client.ask(request, OffsetFetchResponse, FETCH_BY_NAME).groups
    return group


def fetched(group: OffsetFetchResponseGroup) -> dict[tuple[str, int], OffsetFetchResponsePartitions]:
    assert group.error_code == ErrorCode.NONE, ErrorCode(group.error_code).name
    return {(topic.name, part.partition_index): part for topic in group.topics for part in topic.partitions}


def offsets_of(client: WireClient, group_id: str) -> dict[tuple[str, int], int]:
    """Everything that a group has committed."""
    return {place: part.committed_offset for place, part in fetched(fetch_group(client, group_id, None)).items()}


def delete_offsets(
    client: WireClient, group_id: str, partitions: Mapping[str, Sequence[int]]
) -> tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]:
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for topic, indexes in partitions.items()
        ],
    )
    answer = client.ask(request, OffsetDeleteResponse)
    codes = {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
    return ErrorCode(answer.error_code), codes


def delete_groups(client: WireClient, *group_ids: str) -> dict[str, ErrorCode]:
    answer = client.ask(DeleteGroupsRequest(groups_names=list(group_ids)), DeleteGroupsResponse)
    return {result.group_id: ErrorCode(result.error_code) for result in answer.results}


def list_groups(
    client: WireClient, version: int | None = None, *, states: Sequence[str] = (), types: Sequence[str] = ()
) -> dict[str, ListedGroup]:
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    answer = client.ask(request, ListGroupsResponse, version)
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
    return {group.group_id: group for group in answer.groups}


def describe_group(client: WireClient, group_id: str, version: int | None = None) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=version is None or version >= 3)
    (group,) = client.ask(request, DescribeGroupsResponse, version).groups
    return group
