"""Classic groups through a whole broker: what clients see on their connections, at its end and after a restart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker_thread import BrokerThread
from tests.wire_client import WireClient

from ottla.broker.classic_clients import java_form
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

GROUP = "readers"
AT_ONCE = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
NOT_SOON = {**AT_ONCE, "group.initial.rebalance.delay.ms": "600000"}
# What a client does not give up for while a broker starts.
TRIED_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    """Of a broker that has no groups."""
    with BrokerThread(tmp_path_factory.mktemp("groups"), AT_ONCE) as broker, WireClient(broker.port) as client:
        find(client)
        yield client


def join_request(member_id: str = "", **options: Any) -> JoinGroupRequest:
    given: dict[str, Any] = {"instance": None, "session_ms": 30_000, **options}
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=given["session_ms"],
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=given["instance"],
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"topics")],
    )


def sync_request(member_id: str, generation: int) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
    )


def find(client: WireClient) -> None:
    """Have the broker make the topic that groups are kept in."""
    found = client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), FindCoordinatorResponse)
    assert found.coordinators[0].error_code == ErrorCode.NONE


def joined(client: WireClient) -> JoinGroupResponse:
    """A group of one, in its first generation."""
    given = client.ask(join_request(), JoinGroupResponse)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    answer = client.ask(join_request(given.member_id), JoinGroupResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer


def heartbeat(client: WireClient, member_id: str, generation: int) -> ErrorCode:
    request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
    return ErrorCode(client.ask(request, HeartbeatResponse).error_code)


def member_count(client: WireClient) -> int:
    answer = client.ask(DescribeGroupsRequest(groups=[GROUP]), DescribeGroupsResponse, 5)
    return len(answer.groups[0].members)


def test_a_member_from_its_first_request_to_its_last(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, AT_ONCE) as broker, WireClient(broker.port) as client:
        find(client)
        member = joined(client)
        assert member.member_id.startswith("wire-client-")
        assert client.ask(sync_request(member.member_id, 1), SyncGroupResponse).assignment == b"all"
        assert heartbeat(client, member.member_id, 1) == ErrorCode.NONE
        leaving = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member.member_id)])
        assert client.ask(leaving, LeaveGroupResponse).members[0].error_code == ErrorCode.NONE
        assert heartbeat(client, member.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_is_there_after_a_restart(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, AT_ONCE) as broker, WireClient(broker.port) as client:
        find(client)
        member = joined(client)
        client.ask(sync_request(member.member_id, 1), SyncGroupResponse)
    with BrokerThread(tmp_path, AT_ONCE) as broker, WireClient(broker.port) as client:
        request = sync_request(member.member_id, 1)
        while (answer := client.ask(request, SyncGroupResponse)).error_code in TRIED_AGAIN:
            pass
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
        assert heartbeat(client, member.member_id, 1) == ErrorCode.NONE


def test_the_end_of_the_broker_does_not_wait_for_a_rebalance(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, NOT_SOON) as broker, WireClient(broker.port) as client:
        find(client)
        request = join_request()
        client.send(request, 3)
        with WireClient(broker.port) as other:
            other.send(request, 3)
        with WireClient(broker.port) as watcher:
            while member_count(watcher) < 2:
                pass
        broker.stop()
        assert client.receive(request, JoinGroupResponse, 3).error_code == ErrorCode.NOT_COORDINATOR


def test_answers_behind_a_join_wait_for_it(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, AT_ONCE) as broker, WireClient(broker.port) as client:
        find(client)
        request = join_request()
        client.send(request, 3)
        client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"))
        assert client.receive(request, JoinGroupResponse, 3).error_code == ErrorCode.NONE
        assert client.receive(ApiVersionsRequest(), ApiVersionsResponse).error_code == ErrorCode.NONE


def test_a_client_that_hangs_up_and_comes_back_gets_its_answer(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, {**AT_ONCE, "group.initial.rebalance.delay.ms": "300"}) as broker:
        with WireClient(broker.port) as first:
            find(first)
            given = first.ask(join_request(), JoinGroupResponse).member_id
            first.send(join_request(given))
        with WireClient(broker.port) as second:
            answer = second.ask(join_request(given), JoinGroupResponse)
            assert (answer.error_code, answer.leader) == (ErrorCode.NONE, given)


@pytest.mark.parametrize(("version", "protocol_name"), [(0, ""), (6, ""), (7, None), (9, None)])
def test_no_protocol_is_an_empty_name_before_version_7(
    client: WireClient, version: int, protocol_name: str | None
) -> None:
    answer = client.ask(join_request("who", session_ms=1), JoinGroupResponse, version)
    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "who")
    assert answer.protocol_name == protocol_name


def test_an_empty_group_id_is_invalid(client: WireClient) -> None:
    assert client.ask(JoinGroupRequest(member_id="who"), JoinGroupResponse).error_code == ErrorCode.INVALID_GROUP_ID
    sync = SyncGroupRequest(protocol_type="consumer", protocol_name="range")
    assert client.ask(sync, SyncGroupResponse).error_code == ErrorCode.INVALID_GROUP_ID
    assert client.ask(HeartbeatRequest(), HeartbeatResponse).error_code == ErrorCode.INVALID_GROUP_ID
    assert client.ask(LeaveGroupRequest(), LeaveGroupResponse).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_one_who_cannot_leave_is_told_so_in_every_version(client: WireClient, version: int) -> None:
    many = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="who")])
    one = LeaveGroupRequest(group_id=GROUP, member_id="who")
    answer = client.ask(many if version >= 3 else one, LeaveGroupResponse, version)
    codes = [answer.error_code, *(member.error_code for member in answer.members)]
    assert codes == ([0, ErrorCode.UNKNOWN_MEMBER_ID] if version >= 3 else [ErrorCode.UNKNOWN_MEMBER_ID])


def test_a_sync_has_to_say_which_protocol_it_means(client: WireClient) -> None:
    answer = client.ask(SyncGroupRequest(group_id=GROUP, protocol_type="consumer"), SyncGroupResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::1:ab%eth0", "fe80:0:0:0:0:0:1:ab"),
    ],
)
def test_an_address_is_written_as_java_writes_it(host: str, written: str) -> None:
    assert java_form(host) == written
