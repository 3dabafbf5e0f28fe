"""Questions that clients rarely ask; each was once answered in another way than by Apache Kafka."""

import pytest
from tests.unit.broker.api.config_questions import BROKER, THIS_BROKER, TOPIC, change, described
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PRODUCE_BY_NAME,
    batch,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
    values,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import ProduceResponse

MAX_TIMESTAMP = -3


@pytest.mark.parametrize("isolation_level", [2, -1])
def test_an_isolation_level_that_does_not_exist(client: WireClient, topic: str, isolation_level: int) -> None:
    topic_id = create_topic(client, topic)
    request = fetch_request(topic, 0, isolation_level=isolation_level, topic_id=topic_id)
    old = client.ask(request, FetchResponse, 12)
    assert old.responses[0].partitions[0].error_code == old.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    new = client.ask(request, FetchResponse, 13)
    assert (new.error_code, new.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_a_negative_limit_of_bytes(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"a"))
    for request in (fetch_request(topic, 0, max_bytes=-1), fetch_request(topic, 0, partition_max_bytes=-1)):
        answer = only_partition(client.ask(request, FetchResponse, FETCH_BY_NAME))
        assert (answer.error_code, values(answer)) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    at_the_end = only_partition(client.ask(fetch_request(topic, 1, max_bytes=-1), FetchResponse, FETCH_BY_NAME))
    assert at_the_end.error_code == ErrorCode.NONE


def test_aborted_transactions_are_listed_where_they_were_looked_for(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert fetch(client, topic, 0).aborted_transactions is None
    committed = client.ask(fetch_request(topic, 0, isolation_level=1), FetchResponse, FETCH_BY_NAME)
    assert only_partition(committed).aborted_transactions == []
    assert fetch(client, topic, 0, partition=9).aborted_transactions == []
    assert fetch(client, topic, 9).aborted_transactions is None


def test_a_partition_produced_to_twice_in_one_request(client: WireClient, topic: str) -> None:
    """The last batch counts, and there is one answer."""
    create_topic(client, topic)
    request = produce_request(topic, batch(b"first"))
    request.topic_data += produce_request(topic, batch(b"second", b"third")).topic_data
    (answered,) = client.ask(request, ProduceResponse, PRODUCE_BY_NAME).responses
    (answer,) = answered.partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert values(fetch(client, topic, 0)) == [b"second", b"third"]


def test_a_topic_without_partitions_is_not_answered(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    request = produce_request(topic, batch(b"a"))
    request.topic_data[0].partition_data = []
    assert client.ask(request, ProduceResponse, PRODUCE_BY_NAME).responses == []
    deleted = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[])], timeout_ms=1000)
    assert client.ask(deleted, DeleteRecordsResponse).topics == []
    listed = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[])])
    assert client.ask(listed, ListOffsetsResponse).topics == []


def test_a_refused_batch_tells_where_the_log_starts(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    refused = produce(client, topic, batch(b"a", producer_id=5, producer_epoch=0, base_sequence=-1))
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
    no_batch = produce(client, topic, b"\0")
    assert (no_batch.error_code, no_batch.log_start_offset) == (ErrorCode.INVALID_RECORD, -1)


def test_a_producer_cannot_begin_below_no_epoch(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    records = batch(b"a", producer_id=7_000_000, producer_epoch=-2, base_sequence=0)
    assert produce(client, topic, records).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_offsets_of_a_partition_named_twice(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted, wanted])])
    (answered,) = client.ask(request, ListOffsetsResponse).topics
    assert [answer.error_code for answer in answered.partitions] == [ErrorCode.INVALID_REQUEST]


def test_the_largest_time_of_records_without_one(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"a", timestamp=-1))
    wanted = ListOffsetsPartition(partition_index=0, timestamp=MAX_TIMESTAMP)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    (answer,) = client.ask(request, ListOffsetsResponse).topics[0].partitions
    assert (answer.offset, answer.timestamp) == (0, -1)


@pytest.mark.parametrize(("epoch", "code"), [(-1, ErrorCode.NONE), (-2, ErrorCode.FENCED_LEADER_EPOCH)])
def test_only_minus_one_is_no_leader_epoch(client: WireClient, topic: str, epoch: int, code: ErrorCode) -> None:
    create_topic(client, topic)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    assert client.ask(request, ListOffsetsResponse).topics[0].partitions[0].error_code == code
    fetched = client.ask(fetch_request(topic, 0, leader_epoch=epoch), FetchResponse, FETCH_BY_NAME)
    assert only_partition(fetched).error_code == ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_gives_no_time_gets_nothing_done(client: WireClient, topic: str, timeout_ms: int) -> None:
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    creation = CreateTopicsRequest(topics=[wanted], timeout_ms=timeout_ms)
    assert client.ask(creation, CreateTopicsResponse).topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    create_topic(client, topic)
    deletion = DeleteTopicsRequest(topic_names=[topic], timeout_ms=timeout_ms)
    assert client.ask(deletion, DeleteTopicsResponse, 5).responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert fetch(client, topic, 0).error_code == ErrorCode.NONE


def test_metadata_by_id_takes_no_names(client: WireClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    create_topic(client, f"{topic}-other")
    topics = [MetadataRequestTopic(name=f"{topic}-other"), MetadataRequestTopic(name=None, topic_id=topic_id)]
    response = client.ask(MetadataRequest(topics=topics), MetadataResponse)
    assert [answer.name for answer in response.topics] == [topic]
    nobody = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    assert client.ask(nobody, MetadataResponse).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (answer,) = client.ask(nobody, MetadataResponse, 10).topics
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_no_keys_of_a_description_mean_all(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    wanted = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=[])
    (result,) = client.ask(DescribeConfigsRequest(resources=[wanted]), DescribeConfigsResponse).results
    assert len(result.configs) > 20


def test_a_cursor_belongs_to_a_topic_that_is_asked_for(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    for cursor in (Cursor(topic_name="other", partition_index=0), Cursor(topic_name=topic, partition_index=-1)):
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)], cursor=cursor)
        (answer,) = client.ask(request, DescribeTopicPartitionsResponse).topics
        assert (answer.error_code, answer.partitions) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize("key", ["log.retention.ms", "max.connections", "max.connections.per.ip"])
def test_a_running_broker_does_not_change_to_nothing(client: WireClient, key: str) -> None:
    assert change(client, BROKER, THIS_BROKER, (key, 0, "0")) == ErrorCode.INVALID_REQUEST
    assert described(client, BROKER, THIS_BROKER, key) is not None
