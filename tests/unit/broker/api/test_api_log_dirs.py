"""DescribeLogDirs: where the logs are and how much room they take."""

import pytest
from tests.unit.broker.api.questions import batch, create_topic, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

SPACE_SINCE_VERSION = 4


def ask(client: WireClient, wanted: dict[str, list[int]] | None, version: int | None = None) -> DescribeLogDirsResult:
    """What the only directory of the broker says."""
    topics = None
    if wanted is not None:
        topics = [DescribableLogDirTopic(topic=topic, partitions=indexes) for topic, indexes in wanted.items()]
    answer = client.ask(DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse, version)
    assert (answer.error_code, answer.throttle_time_ms) == (ErrorCode.NONE, 0)
    (result,) = answer.results
    assert result.error_code == ErrorCode.NONE
    return result


def sizes(result: DescribeLogDirsResult) -> dict[str, dict[int, int]]:
    for topic in result.topics:
        assert all((replica.offset_lag, replica.is_future_key) == (0, False) for replica in topic.partitions)
    return {
        topic.name: {replica.partition_index: replica.partition_size for replica in topic.partitions}
        for topic in result.topics
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_version(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic, partitions=2)
    records = batch(b"value" * 100)
    produce(client, topic, records, partition=1)
    result = ask(client, {topic: [0, 1]}, version)
    assert sizes(result) == {topic: {0: 0, 1: len(records)}}
    assert result.log_dir.startswith("/")
    assert not result.is_cordoned
    if version >= SPACE_SINCE_VERSION:
        assert 0 < result.usable_bytes <= result.total_bytes
    else:
        assert (result.total_bytes, result.usable_bytes) == (-1, -1)


def test_no_list_means_everything(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=3)
    create_topic(client, topic + "-other")
    found = sizes(ask(client, None))
    assert found[topic] == {0: 0, 1: 0, 2: 0}
    assert found[topic + "-other"] == {0: 0}


def test_an_empty_list_means_nothing(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert ask(client, {}).topics == []


def test_what_is_not_here_is_left_out(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert sizes(ask(client, {topic: [-1, 0, 0, 7], topic + "-unknown": [0], "": [0]})) == {topic: {0: 0}}
    assert ask(client, {topic: []}).topics == []
