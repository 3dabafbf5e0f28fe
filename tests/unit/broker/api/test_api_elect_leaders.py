"""ElectLeaders on one broker, which leads whatever it can lead."""

import pytest
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

Asked = list[tuple[str, list[int]]]
Answers = list[tuple[str, list[tuple[int, int]]]]
NOT_NEEDED, UNKNOWN = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
PREFERRED, UNCLEAN = 0, 1


def elect(client: WireClient, kind: int, asked: Asked | None, version: int | None = None) -> tuple[int, Answers]:
    partitions = None
    if asked is not None:
        partitions = [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in asked]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=10_000)
    answer = client.ask(request, ElectLeadersResponse, version)
    assert answer.throttle_time_ms == 0
    for topic in answer.replica_election_results:
        assert all((each.error_message is None) == (each.error_code == 0) for each in topic.partition_result)
    return answer.error_code, [
        (topic.topic, [(each.partition_id, each.error_code) for each in topic.partition_result])
        for topic in answer.replica_election_results
    ]


@pytest.mark.parametrize("version", range(3))
def test_every_version(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic, partitions=2)
    expected = (0, [(topic, [(1, NOT_NEEDED), (0, NOT_NEEDED)])])
    assert elect(client, PREFERRED, [(topic, [1, 0])], version) == expected
    if version:
        assert elect(client, UNCLEAN, [(topic, [1, 0])], version) == expected


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_everything_that_is_asked_for_is_answered_in_order(client: WireClient, topic: str, kind: int) -> None:
    create_topic(client, topic, partitions=2)
    asked = [("nope", [0]), (topic, [7, 0, -1, 0]), ("", [0]), (topic, [1]), (topic, [])]
    assert elect(client, kind, asked) == (
        0,
        [
            ("nope", [(0, UNKNOWN)]),
            (topic, [(7, UNKNOWN), (0, NOT_NEEDED), (-1, UNKNOWN), (0, NOT_NEEDED)]),
            ("", [(0, UNKNOWN)]),
            (topic, [(1, NOT_NEEDED)]),
            (topic, []),
        ],
    )
    assert elect(client, kind, []) == (0, [])


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_null_asks_for_all_and_names_only_what_needs_it(client: WireClient, topic: str, kind: int) -> None:
    create_topic(client, topic, partitions=2)
    error, answers = elect(client, kind, None)
    assert error == 0
    assert (topic, []) in answers


@pytest.mark.parametrize("kind", [2, -1])
def test_an_election_of_an_unknown_kind(client: WireClient, topic: str, kind: int) -> None:
    create_topic(client, topic)
    invalid = ErrorCode.INVALID_REQUEST
    assert elect(client, kind, [(topic, [0]), ("nope", [3])]) == (
        invalid,
        [(topic, [(0, invalid)]), ("nope", [(3, invalid)])],
    )
    assert elect(client, kind, None) == (invalid, [])


def test_nothing_changes(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    elect(client, PREFERRED, None)
    elect(client, UNCLEAN, [(topic, [0])])
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    (answer,) = client.ask(request, MetadataResponse).topics
    (partition,) = answer.partitions
    assert (partition.leader_id, partition.leader_epoch, partition.isr_nodes) == (1, 0, [1])
