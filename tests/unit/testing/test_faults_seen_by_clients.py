"""Faults as confluent-kafka and aiokafka meet them: retried where they retry, reported where they give up."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka import Message as Delivered
from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.model import AdminClient, Message, Refused
from tests.unit.broker.api.questions import FETCH_BY_NAME, PRODUCE_BY_NAME, batch, fetch_request, produce_request
from tests.wire_client import WireClient

from ottla.protocol import errors
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing import TestBroker

CLIENTS: list[type[AdminClient]] = [ConfluentClient, AiokafkaClient]
VERY_LONG_SECONDS = 3600
TIMEOUT_SECONDS = 60


@pytest.fixture(scope="module")
def shared() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture
def broker(shared: TestBroker) -> Iterator[TestBroker]:
    yield shared
    shared.faults.clear()


@pytest.fixture(params=CLIENTS, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest, broker: TestBroker) -> AdminClient:
    made: AdminClient = request.param(broker.bootstrap_servers)
    return made


def requests(broker: TestBroker, api: str, work: Callable[[], object]) -> int:
    """How many requests of an API a piece of work made."""
    before = broker.faults.requests(api)
    work()
    return broker.faults.requests(api) - before


def values(broker: TestBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


# Errors


def test_a_produce_error_that_passes_is_retried(broker: TestBroker, client: AdminClient, topic: str) -> None:
    broker.create_topic(topic)
    broker.faults.error("PRODUCE", ErrorCode.NOT_ENOUGH_REPLICAS, times=3)
    assert requests(broker, "PRODUCE", lambda: client.produce(topic, 0, [Message(b"value")])) == 4
    assert values(broker, topic) == [b"value"]
    assert broker.faults.pending("PRODUCE") == 0


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.MESSAGE_TOO_LARGE], ids=str)
def test_a_produce_error_that_stays_is_reported(
    broker: TestBroker, client: AdminClient, topic: str, code: ErrorCode
) -> None:
    broker.create_topic(topic)
    broker.faults.error("PRODUCE", code, times=None)
    with pytest.raises(Refused) as caught:
        client.produce(topic, 0, [Message(b"value")])
    assert caught.value.code == code
    assert values(broker, topic) == []


def test_a_fetch_error_that_passes_is_retried(broker: TestBroker, client: AdminClient, topic: str) -> None:
    broker.produce(topic, "value")
    broker.faults.error("FETCH", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    assert [record.value for record in client.consume(topic, 0, 0, 1)] == [b"value"]
    assert broker.faults.pending("FETCH") == 0


def test_a_metadata_error_that_passes_is_retried(broker: TestBroker, client: AdminClient, topic: str) -> None:
    broker.create_topic(topic)
    broker.faults.error("METADATA", ErrorCode.LEADER_NOT_AVAILABLE, times=2)
    client.produce(topic, 0, [Message(b"value")])
    assert values(broker, topic) == [b"value"]
    assert broker.faults.pending("METADATA") == 0


def test_a_new_producer_asks_again_for_its_id(broker: TestBroker, client: AdminClient, topic: str) -> None:
    broker.create_topic(topic)
    broker.faults.error("INIT_PRODUCER_ID", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
    client.produce(topic, 0, [Message(b"value")], idempotent=True)
    assert values(broker, topic) == [b"value"]
    assert broker.faults.pending("INIT_PRODUCER_ID") == 0


def test_admin_calls_report_errors(broker: TestBroker, client: AdminClient, topic: str) -> None:
    code = ErrorCode.POLICY_VIOLATION
    broker.create_topic(f"{topic}-there")
    calls: list[tuple[str, Callable[[], object]]] = [
        ("CREATE_TOPICS", lambda: client.create_topic(topic)),
        ("DELETE_TOPICS", lambda: client.delete_topic(f"{topic}-there")),
        ("DESCRIBE_CONFIGS", lambda: client.topic_configs(f"{topic}-there")),
    ]
    for api, call in calls:
        broker.faults.error(api, code)
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.code == code, api
        assert broker.faults.pending(api) == 0
    assert topic not in broker.topics()
    assert f"{topic}-there" in broker.topics()


def test_more_admin_calls_of_confluent_kafka(broker: TestBroker, topic: str) -> None:
    client = ConfluentClient(broker.bootstrap_servers)
    broker.create_topic(topic)
    broker.faults.error("CREATE_PARTITIONS", "INVALID_PARTITIONS")
    with pytest.raises(Refused) as caught:
        client.create_partitions(topic, 5)
    assert caught.value.code == ErrorCode.INVALID_PARTITIONS
    assert broker.topics()[topic] == 1
    broker.faults.error("LIST_OFFSETS", "TOPIC_AUTHORIZATION_FAILED", times=None)
    with pytest.raises(Refused) as caught:
        client.offset_at(topic, 0, 0)
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_offsets_are_asked_for_again(broker: TestBroker, topic: str) -> None:
    broker.produce(topic, "value")
    broker.faults.error("LIST_OFFSETS", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert AiokafkaClient(broker.bootstrap_servers).offset_at(topic, 0, "latest") == 1
    assert broker.faults.pending("LIST_OFFSETS") == 0


# Disconnects


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_idempotent_producer_survives_a_lost_answer(
    broker: TestBroker, client: AdminClient, topic: str, when: str
) -> None:
    broker.create_topic(topic)
    broker.faults.disconnect("PRODUCE", when=when)  # type: ignore[arg-type]
    messages = [Message(b"value")]
    assert requests(broker, "PRODUCE", lambda: client.produce(topic, 0, messages, idempotent=True)) == 2
    assert values(broker, topic) == [b"value"]


def test_a_plain_producer_writes_twice_when_an_answer_is_lost(
    broker: TestBroker, client: AdminClient, topic: str
) -> None:
    broker.create_topic(topic)
    broker.faults.disconnect("PRODUCE", when="after")
    client.produce(topic, 0, [Message(b"value")])
    assert values(broker, topic) == [b"value", b"value"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("api", ["FETCH", "METADATA", "API_VERSIONS"])
def test_readers_connect_again(broker: TestBroker, topic: str, api: str, when: str) -> None:
    broker.produce(topic, "value")
    broker.faults.disconnect(api, when=when)  # type: ignore[arg-type]
    client = ConfluentClient(broker.bootstrap_servers)
    assert [record.value for record in client.consume(topic, 0, 0, 1)] == [b"value"]
    assert broker.faults.pending(api) == 0


def test_a_disconnect_after_a_call_leaves_its_effect(broker: TestBroker, topic: str) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)])
    for when, is_there in (("before", False), ("after", True)):
        broker.faults.disconnect("CREATE_TOPICS", when=when)  # type: ignore[arg-type]
        with WireClient(broker.port) as client:
            client.send(request)
            assert client.is_closed()
        assert (topic in broker.topics()) is is_there


def test_answers_before_the_one_that_is_lost_still_leave(broker: TestBroker, topic: str) -> None:
    broker.produce(topic, "value")
    broker.faults.disconnect("FETCH", when="after")
    question = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with WireClient(broker.port) as client:
        client.send(question)
        client.send(fetch_request(topic, 0), FETCH_BY_NAME)
        assert client.receive(question, MetadataResponse).topics[0].name == topic
        assert client.is_closed()


# Delays


def test_a_delayed_request_takes_effect_at_once_and_is_answered_later(topic: str) -> None:
    request = produce_request(topic, batch(b"value"))
    with TestBroker() as broker, WireClient(broker.port) as client:
        broker.create_topic(topic)
        broker.faults.delay("PRODUCE", VERY_LONG_SECONDS)
        client.send(request, PRODUCE_BY_NAME)
        assert [record.value for record in broker.wait_for_records(topic, 1)] == [b"value"]
        # The end of the broker ends all delays: the answer that is owed leaves.
        broker.stop()
        ((answer,),) = (
            one.partition_responses for one in client.receive(request, ProduceResponse, PRODUCE_BY_NAME).responses
        )
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


def test_a_delayed_long_poll_and_a_delayed_coroutine(broker: TestBroker, topic: str) -> None:
    """All kinds of handlers: one that answers later by itself, and one that is a coroutine."""
    broker.create_topic(topic)
    broker.faults.delay("FETCH", 0.01)
    broker.faults.delay("METADATA", 0.01)
    request = fetch_request(topic, 0, max_wait_ms=60_000)
    with WireClient(broker.port) as client:
        client.send(request, FETCH_BY_NAME)
        broker.produce(topic, "value")
        (answered,) = client.receive(request, FetchResponse, FETCH_BY_NAME).responses
        assert answered.partitions[0].high_watermark == 1
        question = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        assert client.ask(question, MetadataResponse).topics[0].name == topic
    assert (broker.faults.pending("FETCH"), broker.faults.pending("METADATA")) == (0, 0)


def test_a_client_that_leaves_during_a_delay_disturbs_nobody(
    broker: TestBroker, client: AdminClient, topic: str
) -> None:
    broker.create_topic(topic)
    for api in ("FETCH", "METADATA"):
        broker.faults.delay(api, VERY_LONG_SECONDS)
    for request, version in ((fetch_request(topic, 0, max_wait_ms=60_000), FETCH_BY_NAME), (MetadataRequest(), 12)):
        with WireClient(broker.port) as leaving:
            leaving.send(request, version)
    client.produce(topic, 0, [Message(b"value")])
    assert [record.value for record in client.consume(topic, 0, 0, 1)] == [b"value"]


def test_faults_of_one_api_come_one_after_the_other(broker: TestBroker, client: AdminClient, topic: str) -> None:
    broker.create_topic(topic)
    broker.faults.error("PRODUCE", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.faults.delay("PRODUCE", 0.01)
    broker.faults.disconnect("PRODUCE")
    assert broker.faults.pending("PRODUCE") == 3
    for value in (b"first", b"second"):
        client.produce(topic, 0, [Message(value)])
    assert values(broker, topic) == [b"first", b"second"]
    assert broker.faults.pending("PRODUCE") == 0


# The disk


def test_a_full_disk_makes_a_producer_wait(broker: TestBroker, topic: str) -> None:
    broker.create_topic(topic)
    broker.faults.full_disk()
    with pytest.raises(errors.KafkaError, match="KAFKA_STORAGE_ERROR"):
        broker.produce(topic, "refused")
    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, message: Delivered) -> None:
        outcomes.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    before = broker.faults.requests("PRODUCE")
    producer.produce(topic, b"value", on_delivery=delivered)
    while broker.faults.requests("PRODUCE") < before + 2:
        producer.poll(0.05)
    assert values(broker, topic) == []
    broker.faults.disk_works_again()
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert outcomes == [None]
    assert values(broker, topic) == [b"value"]


def test_a_failed_fsync_is_final_until_the_broker_is_started_again(topic: str) -> None:
    with TestBroker() as broker:
        broker.create_topic(topic, configs={"flush.messages": "1"})
        broker.produce(topic, "flushed")
        broker.faults.fsync_fails()
        with pytest.raises(errors.KafkaError, match="KAFKA_STORAGE_ERROR"):
            broker.produce(topic, "lost")
        with pytest.raises(errors.KafkaError, match="KAFKA_STORAGE_ERROR"):
            broker.produce(topic, "refused")
        broker.restart()
        ConfluentClient(broker.bootstrap_servers).produce(topic, 0, [Message(b"works again")])
        assert [values(broker, topic)[place] for place in (0, -1)] == [b"flushed", b"works again"]
