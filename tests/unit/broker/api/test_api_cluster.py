"""ApiVersions, DescribeCluster, DescribeTopicPartitions, OffsetForLeaderEpoch, FindCoordinator."""

import struct

import pytest
from tests.unit.broker.api.questions import batch, create_topic, produce
from tests.wire_client import WireClient

from ottla.broker.dispatch import registered_handlers
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import decode_response
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

# ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions(client: WireClient, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="wire-client", client_software_version="1.0")
    answer = client.ask(request, ApiVersionsResponse, version)
    offered = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert answer.error_code == ErrorCode.NONE
    assert offered[ApiKey.PRODUCE] == (0, 13)
    assert offered[ApiKey.FETCH] == (4, 18)
    assert offered[ApiKey.API_VERSIONS] == (0, 4)
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    supported = {feature.name: feature.max_version for feature in answer.supported_features}
    assert finalized.get("transaction.version") == (2 if version >= 3 else None)
    assert supported.get("transaction.version") == (2 if version >= 4 else None)
    assert (answer.finalized_features_epoch >= 0) == (version >= 3)


@pytest.mark.usefixtures("ottla_only")
def test_what_is_offered_is_what_is_served(client: WireClient) -> None:
    answer = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
    assert [api.api_key for api in answer.api_keys] == list(registered_handlers())


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_a_version_of_the_future_gets_an_answer_of_version_0(client: WireClient, version: int) -> None:
    content = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 4711, -1) + b"\0whatever the future brings"
    client.send_bytes(struct.pack(">i", len(content)) + content)
    correlation_id, answer = decode_response(ApiVersionsRequest, 0, client.frame())
    assert isinstance(answer, ApiVersionsResponse)
    assert (correlation_id, answer.error_code) == (4711, ErrorCode.UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [(ApiKey.API_VERSIONS, 0, 4)]
    assert client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "version"), [("", "1.0"), ("a", ""), ("-a", "1"), ("a b", "1"), ("a", "1_"), ("ä", "1")]
)
def test_software_names_are_checked(client: WireClient, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert client.ask(request, ApiVersionsResponse, 3).error_code == ErrorCode.INVALID_REQUEST


# DescribeCluster


@pytest.mark.parametrize("version", range(3))
def test_every_version_of_describe_cluster(client: WireClient, version: int, api_port: int) -> None:
    answer = client.ask(DescribeClusterRequest(), DescribeClusterResponse, version)
    assert (answer.error_code, answer.error_message, answer.controller_id) == (0, None, 1)
    assert answer.cluster_id
    assert [(broker.broker_id, broker.port) for broker in answer.brokers] == [(1, api_port)]
    assert answer.cluster_authorized_operations == -(2**31)


def test_operations_on_the_cluster(client: WireClient) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert client.ask(request, DescribeClusterResponse).cluster_authorized_operations > 0


@pytest.mark.parametrize(
    ("endpoint_type", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_endpoints_that_are_not_described_here(client: WireClient, endpoint_type: int, code: ErrorCode) -> None:
    answer = client.ask(DescribeClusterRequest(endpoint_type=endpoint_type), DescribeClusterResponse)
    assert (answer.error_code, answer.brokers) == (code, [])


# DescribeTopicPartitions


def page(
    client: WireClient, *names: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
    )
    return client.ask(request, DescribeTopicPartitionsResponse)


def partitions(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, partition.partition_index) for topic in response.topics for partition in topic.partitions]


def test_partitions_of_topics(client: WireClient, topic: str) -> None:
    topic_id = create_topic(client, topic, partitions=2)
    response = page(client, topic)
    (answer,) = response.topics
    assert (answer.error_code, answer.name, answer.topic_id) == (0, topic, topic_id)
    assert [(found.partition_index, found.leader_id, found.isr_nodes) for found in answer.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
    ]
    assert response.next_cursor is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
def test_paging_sees_every_partition_once(client: WireClient, topic: str, limit: int) -> None:
    names = [f"{topic}-{letter}" for letter in "abc"]
    for count, name in enumerate(names, 1):
        create_topic(client, name, partitions=count)
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    for _ in range(10):
        response = page(client, *reversed(names), limit=limit, cursor=cursor)
        found = partitions(response)
        assert len(found) <= limit
        seen += found
        if response.next_cursor is None:
            break
        cursor = Cursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )
    assert seen == [(names[0], 0), (names[1], 0), (names[1], 1), (names[2], 0), (names[2], 1), (names[2], 2)]


def test_all_topics_are_described_when_none_is_named(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert (topic, 0) in partitions(page(client))


def test_topics_that_are_not_there(client: WireClient, topic: str) -> None:
    (answer,) = page(client, topic).topics
    assert (answer.error_code, answer.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic)
    (answer,) = page(client, "a/b").topics
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


# OffsetForLeaderEpoch


def epoch_end(
    client: WireClient, topic: str, epoch: int, *, current: int = -1, partition: int = 0, version: int = 4
) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    ((answer,),) = (found.partitions for found in client.ask(request, OffsetForLeaderEpochResponse, version).topics)
    return answer


@pytest.mark.parametrize("version", range(2, 5))
def test_where_an_epoch_ends(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"one", b"two"))
    answer = epoch_end(client, topic, 0, current=0, version=version)
    assert (answer.error_code, answer.partition, answer.leader_epoch, answer.end_offset) == (0, 0, 0, 2)


def test_epochs_that_are_not_known(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"one"))
    answer = epoch_end(client, topic, 5)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, -1, -1)


@pytest.mark.parametrize(
    ("partition", "current", "code"),
    [(7, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, 9, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_epochs_that_cannot_be_asked_for(
    client: WireClient, topic: str, partition: int, current: int, code: ErrorCode
) -> None:
    create_topic(client, topic)
    answer = epoch_end(client, topic, 0, partition=partition, current=current)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (code, -1, -1)


# FindCoordinator

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.usefixtures("ottla_only")
@pytest.mark.parametrize("version", range(4, 7))
def test_coordinators_of_transactions(client: WireClient, version: int, api_port: int) -> None:
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["a", "b"])
    answer = client.ask(request, FindCoordinatorResponse, version)
    assert [coordinator.key for coordinator in answer.coordinators] == ["a", "b"]
    found = [(each.error_code, each.node_id, each.port) for each in answer.coordinators]
    assert set(found) == {(ErrorCode.NONE, 1, api_port)}


@pytest.mark.parametrize(
    ("key_type", "key", "version"), [(9, "x", 6), (SHARE, "no share key", 6), (SHARE, "group:id:0", 5)]
)
def test_keys_that_have_no_coordinator(client: WireClient, key_type: int, key: str, version: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    (answer,) = client.ask(request, FindCoordinatorResponse, version).coordinators
    assert answer.error_code == ErrorCode.INVALID_REQUEST
