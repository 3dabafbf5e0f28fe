"""OffsetCommit, OffsetFetch, OffsetDelete: how far groups have read."""

import pytest
from tests.unit.broker.api.offset_questions import (
    commit,
    commit_codes,
    commit_request,
    delete_offsets,
    describe_group,
    fetch_group,
    fetched,
    find_coordinator,
    offsets_of,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

NONE = ErrorCode.NONE
UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
PATIENCE_MS = 10_000


@pytest.fixture
def group(client: WireClient, topic: str) -> str:
    group_id = f"group-of-{topic}"
    find_coordinator(client, group_id)
    return group_id


@pytest.mark.parametrize("version", range(2, 10))
def test_commit_and_fetch_in_every_version(client: WireClient, topic: str, group: str, version: int) -> None:
    create_topic(client, topic, partitions=2)
    assert commit(client, group, {topic: {0: 7, 1: 8}}, version) == {(topic, 0): NONE, (topic, 1): NONE}
    found = fetched(fetch_group(client, group, {topic: [1, 0, 5]}))
    assert {place: (part.committed_offset, part.metadata) for place, part in found.items()} == {
        (topic, 1): (8, "at 8"),
        (topic, 0): (7, "at 7"),
        (topic, 5): (-1, ""),
    }
    for old in range(1, 8):
        request = OffsetFetchRequest(
            group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 5])]
        )
        answer = client.ask(request, OffsetFetchResponse, old)
        ((one, none),) = (answered.partitions for answered in answer.topics)
        assert (one.committed_offset, one.metadata, one.error_code) == (7, "at 7", NONE)
        assert (none.committed_offset, none.metadata, none.error_code) == (-1, "", NONE)


def test_topics_by_id(client: WireClient, topic: str, group: str) -> None:
    topic_id = create_topic(client, topic)
    unknown_id = bytes(range(1, 17))
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=4, committed_leader_epoch=0)
    beyond = OffsetCommitRequestPartition(partition_index=1, committed_offset=4)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(topic_id=topic_id, partitions=[part, beyond]),
            OffsetCommitRequestTopic(topic_id=unknown_id, partitions=[part]),
        ],
    )
    answer = client.ask(request, OffsetCommitResponse, 10)
    codes = {
        (answered.topic_id, partition.partition_index): ErrorCode(partition.error_code)
        for answered in answer.topics
        for partition in answered.partitions
    }
    assert codes == {
        (topic_id, 0): NONE,
        (topic_id, 1): UNKNOWN_TOPIC,
        (unknown_id, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }
    wanted = [OffsetFetchRequestTopics(topic_id=asked, partition_indexes=[0]) for asked in (unknown_id, topic_id)]
    for topics in (wanted, None):
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
        (found,) = client.ask(fetch, OffsetFetchResponse, 10).groups
        by_id = {answered.topic_id: answered.partitions[0] for answered in found.topics}
        assert by_id[topic_id].committed_offset == 4
        assert by_id[topic_id].committed_leader_epoch == 0
        if topics is not None:
            assert by_id[unknown_id].error_code == ErrorCode.UNKNOWN_TOPIC_ID
            assert (by_id[unknown_id].committed_offset, by_id[unknown_id].metadata) == (-1, "")


def test_partitions_that_do_not_exist(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic)
    offsets = {topic: {0: 1, 1: 1, -1: 1}, f"{topic}-other": {0: 1}}
    assert commit(client, group, offsets) == {
        (topic, 0): NONE,
        (topic, 1): UNKNOWN_TOPIC,
        (topic, -1): UNKNOWN_TOPIC,
        (f"{topic}-other", 0): UNKNOWN_TOPIC,
    }
    assert offsets_of(client, group) == {(topic, 0): 1}


def test_a_commit_of_nothing_that_exists_makes_no_group(client: WireClient, topic: str, group: str) -> None:
    assert commit(client, group, {topic: {0: 1}}, generation_id_or_member_epoch=5) == {(topic, 0): UNKNOWN_TOPIC}
    assert describe_group(client, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_group_that_is_not_there(
    client: WireClient, topic: str, group: str, version: int, code: ErrorCode
) -> None:
    create_topic(client, topic)
    answer = commit(client, group, {topic: {0: 1}}, version, member_id="m", generation_id_or_member_epoch=1)
    assert answer == {(topic, 0): code}


def test_a_member_of_a_group_without_members(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic)
    commit(client, group, {topic: {0: 1}})
    for instance_id in (None, "i"):
        request = commit_request(group, {topic: {0: 2}}, member_id="m", group_instance_id=instance_id)
        assert commit_codes(client.ask(request, OffsetCommitResponse, 9)) == {(topic, 0): NONE}
        request.generation_id_or_member_epoch = 0
        codes = commit_codes(client.ask(request, OffsetCommitResponse, 9))
        assert codes == {(topic, 0): ErrorCode.UNKNOWN_MEMBER_ID}


def test_metadata_is_bounded(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic, partitions=2)
    request = commit_request(group, {topic: {0: 1, 1: 2}})
    request.topics[0].partitions[0].committed_metadata = "x" * 4097
    request.topics[0].partitions[1].committed_metadata = "x" * 4096
    assert commit_codes(client.ask(request, OffsetCommitResponse, 9)) == {
        (topic, 0): ErrorCode.OFFSET_METADATA_TOO_LARGE,
        (topic, 1): NONE,
    }
    request.topics[0].partitions[0].committed_metadata = None
    client.ask(request, OffsetCommitResponse, 9)
    assert fetched(fetch_group(client, group, {topic: [0]}))[topic, 0].metadata == ""


def test_unusual_offsets_are_kept_as_they_came(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic, partitions=3)
    unusual = {0: -1, 1: -7, 2: 2**63 - 1}
    assert set(commit(client, group, {topic: unusual}).values()) == {NONE}
    assert offsets_of(client, group) == {(topic, index): number for index, number in unusual.items()}


def test_the_empty_group_id_is_an_id_like_others_for_offsets(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic)
    find_coordinator(client, "")
    assert commit(client, "", {topic: {0: 5}}) == {(topic, 0): NONE}
    assert offsets_of(client, "")[topic, 0] == 5
    assert delete_offsets(client, "", {topic: [0]}) == (ErrorCode.INVALID_GROUP_ID, {})


def test_several_groups_in_one_question(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic)
    others = [f"{group}-{number}" for number in range(3)]
    for number, other in enumerate(others):
        find_coordinator(client, other)
        commit(client, other, {topic: {0: number}})
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=other, topics=None) for other in (*others, f"{group}-unknown")],
        require_stable=True,
    )
    answer = client.ask(request, OffsetFetchResponse, 9)
    assert [
        (found.group_id, [part.committed_offset for answered in found.topics for part in answered.partitions])
        for found in answer.groups
    ] == [*((other, [number]) for number, other in enumerate(others)), (f"{group}-unknown", [])]


# Deleting


def test_deleting_offsets(client: WireClient, topic: str, group: str) -> None:
    create_topic(client, topic, partitions=2)
    assert delete_offsets(client, group, {topic: [0]}) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    commit(client, group, {topic: {0: 1, 1: 2}})
    code, codes = delete_offsets(client, group, {topic: [0, 7], f"{topic}-other": [0]})
    assert code == NONE
    assert codes == {(topic, 0): NONE, (topic, 7): UNKNOWN_TOPIC, (f"{topic}-other", 0): UNKNOWN_TOPIC}
    assert offsets_of(client, group) == {(topic, 1): 2}


def test_offsets_of_a_deleted_topic_are_gone(client: WireClient, topic: str, group: str) -> None:
    kept = f"{topic}-kept"
    for name in (topic, kept):
        create_topic(client, name)
    commit(client, group, {topic: {0: 1}, kept: {0: 2}})
    client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=PATIENCE_MS), DeleteTopicsResponse, 5)
    for _ in range(1_000):
        if offsets_of(client, group) == {(kept, 0): 2}:
            return
    raise AssertionError("the offset is still there")
