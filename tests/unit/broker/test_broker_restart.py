"""What a broker keeps over a stop, and what keeps it from starting."""

import os
import socket
import time
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    batch,
    consume,
    create_topic,
    fetch,
    fetch_request,
    new_producer_id,
    only_partition,
    produce,
)
from tests.wire_client import WireClient

from ottla.broker.broker import StartError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse


def refusal(directory: Path, **properties: str) -> str:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    with pytest.raises(StartError) as caught:
        BrokerThread(directory, named).start()
    return str(caught.value)


def test_a_restart_keeps_topics_ids_records_and_the_cluster(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        topic_id = create_topic(client, "kept", partitions=3, configs={"retention.ms": "12345"})
        for index in range(3):
            produce(client, "kept", batch(b"a%d" % index, b"b%d" % index), partition=index)
        cluster_id = client.ask(DescribeClusterRequest(), DescribeClusterResponse).cluster_id
        producer_id = new_producer_id(client)
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        (topic,) = client.ask(MetadataRequest(topics=None), MetadataResponse).topics
        assert (topic.name, topic.topic_id, len(topic.partitions)) == ("kept", topic_id, 3)
        for index in range(3):
            assert consume(client, "kept", 2, partition=index) == [b"a%d" % index, b"b%d" % index]
            assert produce(client, "kept", batch(b"more"), partition=index).base_offset == 2
        assert client.ask(DescribeClusterRequest(), DescribeClusterResponse).cluster_id == cluster_id
        assert new_producer_id(client) > producer_id


def test_a_restart_keeps_what_is_known_of_producers(tmp_path: Path) -> None:
    def numbered(sequence: int) -> bytes:
        return batch(
            b"%d" % sequence,
            timestamp=int(time.time() * 1000),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )

    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        create_topic(client, "topic")
        producer_id = new_producer_id(client)
        for sequence in range(3):
            produce(client, "topic", numbered(sequence))
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        assert produce(client, "topic", numbered(2)).base_offset == 2
        assert produce(client, "topic", numbered(4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(client, "topic", numbered(3)).base_offset == 3


def test_a_deleted_topic_stays_deleted(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        create_topic(client, "gone")
        produce(client, "gone", batch(b"old"))
        client.ask(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1000), DeleteTopicsResponse, 5)
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        assert client.ask(MetadataRequest(topics=None), MetadataResponse).topics == []
        create_topic(client, "gone")
        assert fetch(client, "gone", 0).high_watermark == 0
    assert not list(tmp_path.glob("*-delete"))


def test_readers_of_an_older_leader_epoch_are_fenced(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        create_topic(client, "topic")
        produce(client, "topic", batch(b"one"))
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        (topic,) = client.ask(MetadataRequest(topics=None), MetadataResponse).topics
        epoch = topic.partitions[0].leader_epoch
        assert epoch > 0
        for believed, code in (
            (epoch, ErrorCode.NONE),
            (epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            request = fetch_request("topic", 0, leader_epoch=believed)
            answer = only_partition(client.ask(request, FetchResponse, FETCH_BY_NAME))
            assert ErrorCode(answer.error_code) == code


def test_waiting_readers_are_answered_at_the_end(tmp_path: Path) -> None:
    broker = BrokerThread(tmp_path).start()
    with WireClient(broker.port) as client:
        create_topic(client, "topic")
        request = fetch_request("topic", 0, max_wait_ms=3_600_000)
        with WireClient(broker.port) as reader:
            reader.send(request, FETCH_BY_NAME)
            fetch(client, "topic", 0)
            broker.stop()
            answer = only_partition(reader.receive(request, FetchResponse, FETCH_BY_NAME))
            assert (answer.error_code, bytes(answer.records or b"")) == (ErrorCode.NONE, b"")
            assert reader.is_closed()


def test_several_directories(tmp_path: Path) -> None:
    directories = [tmp_path / name for name in ("one", "two")]
    properties = {"log.dirs": ",".join(map(str, directories))}
    with BrokerThread(tmp_path, properties) as broker, WireClient(broker.port) as client:
        create_topic(client, "topic", partitions=4)
        for index in range(4):
            produce(client, "topic", batch(b"%d" % index), partition=index)
    assert [len(list(directory.glob("topic-*"))) for directory in directories] == [2, 2]
    with BrokerThread(tmp_path, properties) as broker, WireClient(broker.port) as client:
        for index in range(4):
            assert consume(client, "topic", 1, partition=index) == [b"%d" % index]


# What keeps a broker from starting


def test_a_directory_that_is_in_use_names_the_process(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        message = refusal(tmp_path)
        assert str(tmp_path) in message
        assert f"process {os.getpid()}" in message
        create_topic(client, "still-works")


def test_a_directory_of_another_broker(tmp_path: Path) -> None:
    BrokerThread(tmp_path).start().stop()
    message = refusal(tmp_path, node_id="2")
    assert "node.id=2" in message
    assert "node.id=1" in message


def test_a_port_that_is_taken_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refusal(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}")
    assert str(port) in message
    assert "--port" in message
    with BrokerThread(tmp_path) as broker, WireClient(broker.port) as client:
        create_topic(client, "topic")


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a directory")
    assert str(path) in refusal(path)
