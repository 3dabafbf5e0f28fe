from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import batch, create_topic, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

NOT_ASKED = -(2**31)
READ, WRITE, DESCRIBE = 1 << 3, 1 << 4, 1 << 8


def ask(client: WireClient, *names: str, version: int = 13, auto_create: bool = False) -> MetadataResponse:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=auto_create or version < 4
    )
    return client.ask(request, MetadataResponse, version)


def one(response: MetadataResponse) -> MetadataResponseTopic:
    (answer,) = response.topics
    return answer


@pytest.mark.parametrize("version", range(14))
def test_every_version(client: WireClient, topic: str, version: int, api_port: int) -> None:
    topic_id = create_topic(client, topic, partitions=3)
    response = ask(client, topic, version=version)
    assert [(broker.node_id, broker.port) for broker in response.brokers] == [(1, api_port)]
    answer = one(response)
    assert (answer.error_code, answer.name, answer.is_internal) == (0, topic, False)
    assert answer.topic_id == (topic_id if version >= 10 else bytes(16))
    assert [partition.partition_index for partition in answer.partitions] == [0, 1, 2]
    for partition in answer.partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id


def test_all_topics(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    for version, topics in ((0, []), (1, None), (13, None)):
        request = MetadataRequest(topics=topics)
        assert topic in {found.name for found in client.ask(request, MetadataResponse, version).topics}


@pytest.mark.parametrize("version", [1, 13])
def test_no_topics(client: WireClient, version: int) -> None:
    response = client.ask(MetadataRequest(topics=[]), MetadataResponse, version)
    assert response.topics == []
    assert response.brokers


@pytest.mark.parametrize("version", [4, 13])
def test_the_client_can_forbid_creation(client: WireClient, topic: str, version: int) -> None:
    answer = one(ask(client, topic, version=version))
    assert (answer.error_code, answer.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic)
    assert one(ask(client, topic, version=version)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.usefixtures("ottla_only")
@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_a_topic_that_is_asked_for_is_created_and_can_be_used(client: WireClient, topic: str, version: int) -> None:
    answer = one(ask(client, topic, version=version, auto_create=True))
    assert (answer.error_code, len(answer.partitions)) == (0, 1)
    assert produce(client, topic, batch(b"one")).error_code == ErrorCode.NONE


@pytest.mark.usefixtures("ottla_only")
def test_several_topics_are_created_at_once(client: WireClient, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(10)]
    response = ask(client, *names, auto_create=True)
    assert [(answer.name, answer.error_code) for answer in response.topics] == [(name, 0) for name in names]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250])
def test_names_that_no_topic_can_have(client: WireClient, name: str) -> None:
    answer = one(ask(client, name, auto_create=True))
    assert (answer.error_code, answer.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)


def test_a_topic_named_twice_is_answered_once(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert one(ask(client, topic, topic)).name == topic


def test_by_id(client: WireClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])
    answer = one(client.ask(request, MetadataResponse))
    assert (answer.error_code, answer.name, answer.topic_id) == (0, topic, topic_id)


def test_an_id_nobody_has(client: WireClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"?" * 16)])
    answer = one(client.ask(request, MetadataResponse))
    assert (answer.error_code, answer.name, answer.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, b"?" * 16)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_cannot_be_asked_for_before_version_12(client: WireClient, topic: str, version: int) -> None:
    topic_id = create_topic(client, topic)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic, topic_id=topic_id)])
    assert one(client.ask(request, MetadataResponse, version)).error_code == ErrorCode.INVALID_REQUEST


def test_authorized_operations_are_told_when_asked_for(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert one(ask(client, topic)).topic_authorized_operations == NOT_ASKED
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], include_topic_authorized_operations=True)
    operations = one(client.ask(request, MetadataResponse)).topic_authorized_operations
    assert operations & (READ | WRITE | DESCRIBE) == READ | WRITE | DESCRIBE


def test_authorized_operations_of_the_cluster(client: WireClient) -> None:
    for version in (8, 10):
        request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        assert client.ask(request, MetadataResponse, version).cluster_authorized_operations > 0


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[WireClient]:
    properties = {"auto.create.topics.enable": "false", "broker.rack": "r1", "node.id": "7"}
    with BrokerThread(tmp_path, properties) as broker, WireClient(broker.port) as client:
        yield client


def test_the_broker_can_forbid_creation(strict: WireClient) -> None:
    answer = one(ask(strict, "wanted", auto_create=True))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_brokers_tell_their_rack_and_number(strict: WireClient) -> None:
    (broker,) = ask(strict).brokers
    assert (broker.node_id, broker.rack, broker.host) == (7, "r1", "127.0.0.1")


def test_clients_are_told_the_advertised_listener_of_the_one_they_use(tmp_path: Path) -> None:
    properties = {
        "listeners": "INNER://127.0.0.1:0,OUTER://127.0.0.1:0",
        "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
        "advertised.listeners": "OUTER://broker.example:19092",
    }
    with BrokerThread(tmp_path, properties) as running, WireClient(running.port) as client:
        (broker,) = ask(client).brokers
    assert (broker.host, broker.port) == ("127.0.0.1", running.port)
