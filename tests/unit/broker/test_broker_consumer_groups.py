"""Consumer groups through the life of a broker: restarts and kills, commits, deletions."""

from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.offset_questions import delete_groups, find_coordinator, list_groups
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

FEW = {"offsets.topic.num.partitions": "3"}


def beat(client: WireClient, member: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 60_000
        request.subscribed_topic_names = ["t"]
        request.topic_partitions = []
    return client.ask(request, ConsumerGroupHeartbeatResponse)


def describe(client: WireClient) -> tuple[str, list[str], int]:
    (group,) = client.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), ConsumerGroupDescribeResponse).groups
    return group.group_state, [member.member_id for member in group.members], group.error_code


def commit(client: WireClient, member: str, epoch: int) -> int:
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
            )
        ],
    )
    return client.ask(request, OffsetCommitResponse, 9).topics[0].partitions[0].error_code


@pytest.mark.parametrize("is_killed", [False, True])
def test_members_outlive_the_broker(tmp_path: Path, is_killed: bool) -> None:
    with BrokerThread(tmp_path, FEW) as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t", partitions=2)
            find_coordinator(client, "g")
            joined = beat(client, "m", 0)
            assert joined.assignment is not None
            assert describe(client) == ("Stable", ["m"], ErrorCode.NONE)
        (broker.kill if is_killed else broker.stop)()
        broker.start()
        with WireClient(broker.port) as client:
            find_coordinator(client, "g")
            assert describe(client) == ("Stable", ["m"], ErrorCode.NONE)
            again = beat(client, "m", joined.member_epoch)
            assert (again.error_code, again.assignment) == (ErrorCode.NONE, None)


def test_commits_of_members_and_the_end_of_a_group(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, FEW) as broker, WireClient(broker.port) as client:
        create_topic(client, "t", partitions=2)
        find_coordinator(client, "g")
        epoch = beat(client, "m", 0).member_epoch
        assert commit(client, "m", epoch) == ErrorCode.NONE
        assert commit(client, "m", epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
        assert commit(client, "m", epoch - 1) == ErrorCode.STALE_MEMBER_EPOCH
        assert commit(client, "other", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
        assert delete_groups(client, "g") == {"g": ErrorCode.NON_EMPTY_GROUP}
        assert beat(client, "m", -1).member_epoch == -1
        assert describe(client) == ("Empty", [], ErrorCode.NONE)
        assert delete_groups(client, "g") == {"g": ErrorCode.NONE}
        assert describe(client)[2] == ErrorCode.GROUP_ID_NOT_FOUND
        assert list_groups(client) == {}


def test_a_refusal_says_why(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, FEW) as broker, WireClient(broker.port) as client:
        find_coordinator(client, "g")
        answer = beat(client, "", 1)
        assert (answer.error_code, bool(answer.error_message)) == (ErrorCode.INVALID_REQUEST, True)
        answer = beat(client, "m", 1)
        assert (answer.error_code, bool(answer.error_message)) == (ErrorCode.GROUP_ID_NOT_FOUND, True)
