"""FindCoordinator, ListGroups, DescribeGroups, DeleteGroups: groups as tools see them."""

import pytest
from tests.unit.broker.api.offset_questions import (
    commit,
    delete_groups,
    delete_offsets,
    describe_group,
    find_coordinator,
    list_groups,
    offsets_of,
)
from tests.unit.broker.api.questions import batch, create_topic, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.list_groups import ListedGroup
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

NONE = ErrorCode.NONE
GROUP_TOPIC = "__consumer_offsets"


@pytest.fixture
def group(client: WireClient, topic: str) -> str:
    """A group without members that has committed."""
    group_id = f"group-of-{topic}"
    find_coordinator(client, group_id)
    create_topic(client, topic)
    assert set(commit(client, group_id, {topic: {0: 1}}).values()) == {NONE}
    return group_id


@pytest.mark.parametrize("version", range(7))
def test_the_coordinator_is_a_broker_that_can_be_reached(client: WireClient, group: str, version: int) -> None:
    expected = (NONE, 1, client.socket.getpeername()[1])
    if version < 4:
        answer = client.ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse, version)
        assert (answer.error_code, answer.node_id, answer.port) == expected
    else:
        request = FindCoordinatorRequest(coordinator_keys=[group, "another"])
        answer = client.ask(request, FindCoordinatorResponse, version)
        found = [(one.key, (one.error_code, one.node_id, one.port)) for one in answer.coordinators]
        assert found == [(group, expected), ("another", expected)]


def test_keys_that_no_coordinator_is_responsible_for(client: WireClient, group: str) -> None:
    unknown_type = client.ask(FindCoordinatorRequest(key=group, key_type=9), FindCoordinatorResponse, 3)
    assert (unknown_type.error_code, unknown_type.node_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_the_topic_of_groups(client: WireClient, group: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=GROUP_TOPIC)])
    (described,) = client.ask(request, MetadataResponse).topics
    assert described.is_internal
    assert described.partitions
    refused = produce(client, GROUP_TOPIC, batch(b"a client's"), partition=0)
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_group_without_members_is_listed(client: WireClient, group: str) -> None:
    expected = ListedGroup(group_id=group, protocol_type="", group_state="Empty", group_type="classic")
    assert list_groups(client)[group] == expected
    assert list_groups(client, 3)[group] == ListedGroup(group_id=group, protocol_type="")
    for states, types, is_found in (
        (["empty"], [], True),
        (["Stable", " EMPTY "], [], True),
        (["Stable"], [], False),
        (["unheard-of"], [], False),
        ([], ["CLASSIC"], True),
        ([], ["consumer"], False),
        ([], ["unheard-of"], False),
        (["Dead"], ["classic"], False),
    ):
        assert (group in list_groups(client, states=states, types=types)) == is_found, (states, types)


@pytest.mark.parametrize("version", range(7))
def test_a_group_without_members_is_described(client: WireClient, group: str, version: int) -> None:
    described = describe_group(client, group, version)
    assert (described.error_code, described.group_state, described.protocol_type) == (NONE, "Empty", "")
    assert described.members == []
    if version >= 3:
        assert described.authorized_operations == sum(1 << operation for operation in (3, 6, 8, 10, 11))


def test_a_group_that_is_not_there(client: WireClient, group: str) -> None:
    unknown = f"{group}-unknown"
    older = describe_group(client, unknown, 5)
    assert (older.error_code, older.group_state) == (NONE, "Dead")
    newer = describe_group(client, unknown)
    assert (newer.error_code, newer.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert newer.error_message


def test_deleting_groups(client: WireClient, group: str, topic: str) -> None:
    unknown = f"{group}-unknown"
    assert delete_groups(client, group, unknown, group) == {group: NONE, unknown: ErrorCode.GROUP_ID_NOT_FOUND}
    assert group not in list_groups(client)
    assert offsets_of(client, group) == {}
    assert commit(client, group, {topic: {0: 9}}) == {(topic, 0): NONE}
    assert offsets_of(client, group) == {(topic, 0): 9}


def test_a_group_outlives_its_last_offset(client: WireClient, group: str, topic: str) -> None:
    assert delete_offsets(client, group, {topic: [0]})[0] == NONE
    assert describe_group(client, group).group_state == "Empty"
    assert delete_groups(client, group) == {group: NONE}
