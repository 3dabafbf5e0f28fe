"""A broker with quotas, by a clock that the test moves: who has to wait is told so, and is not heard meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PRODUCE_BY_NAME,
    batch,
    create_topic,
    fetch_request,
    produce,
    produce_request,
    values,
)
from tests.unit.broker.api.quota_questions import NamedClient, set_quota
from tests.unit.broker.test_broker_metrics import HTTP, scrape
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import encode_request
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing import ManualClock

TOPIC = "limited"
RECORD_BYTES = 10_000
EVERY_CLIENT = [("client-id", None)]
HOUR_MS = 3_600_000


class TickingClock(ManualClock):
    """Every look at it takes a while, so that requests take time that can be told."""

    def __init__(self) -> None:
        super().__init__()
        self.tick_seconds = 0.0
        self._ticked = 0.0

    def monotonic(self) -> float:
        self._ticked += self.tick_seconds
        return super().monotonic() + self._ticked


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def broker(tmp_path: Path, clock: TickingClock) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path, HTTP, broker_clock=clock) as running:
        with WireClient(running.port) as client:
            create_topic(client, TOPIC)
        yield running


def limit(broker: BrokerThread, **limits: float | None) -> None:
    """Under a client id that nothing else uses, on a connection that is not held to it for long."""
    with NamedClient(broker.port, "operator") as operator:
        set_quota(operator, EVERY_CLIENT, **limits)


def send(client: WireClient, size_bytes: int = RECORD_BYTES, acks: int = 1) -> ProduceResponse:
    return client.ask(produce_request(TOPIC, batch(b"x" * size_bytes), acks=acks), ProduceResponse, PRODUCE_BY_NAME)


def wait_ms(size_bytes: int, limit: int) -> int:
    """What a new client has to wait for its first request, with windows of ten seconds before the one under way."""
    request = produce_request(TOPIC, batch(b"x" * size_bytes), acks=1)
    frame_bytes = len(encode_request(request, PRODUCE_BY_NAME, 1, "app")) - 4
    return round((frame_bytes / 10 - limit) / limit * 10_000)


def read(client: WireClient, request: FetchRequest | None = None) -> FetchResponse:
    return client.ask(request or fetch_request(TOPIC, 0), FetchResponse, FETCH_BY_NAME)


def muted_clients(broker: BrokerThread) -> int:
    """How many connections the broker does not listen to."""
    muted: list[bool] = []
    connections = broker.broker._server.connections
    broker.call(lambda: muted.extend(connection.is_muted for connection in list(connections.values())))
    return sum(muted)


def test_a_producer_above_its_quota_is_answered_at_once_and_then_not_heard(broker: BrokerThread) -> None:
    limit(broker, producer_byte_rate=100.0)
    with NamedClient(broker.port, "app") as client:
        answer = send(client)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert answer.throttle_time_ms == wait_ms(RECORD_BYTES, 100)
        assert muted_clients(broker) == 1
        with NamedClient(broker.port, "other") as other:
            assert send(other, 500).throttle_time_ms == 0
            assert send(other, 100).throttle_time_ms == 0
        assert muted_clients(broker) == 1


def test_a_quota_that_is_gone_holds_nobody(broker: BrokerThread) -> None:
    limit(broker, producer_byte_rate=1.0)
    limit(broker, producer_byte_rate=None)
    assert broker.broker.dispatcher.metering is None
    with NamedClient(broker.port, "app") as client:
        assert [send(client).throttle_time_ms for _ in range(3)] == [0, 0, 0]


def test_what_was_used_is_forgotten_with_time(broker: BrokerThread, clock: TickingClock) -> None:
    limit(broker, producer_byte_rate=2000.0)
    with NamedClient(broker.port, "app") as client:
        assert send(client).throttle_time_ms == 0
    with NamedClient(broker.port, "app") as client:
        assert send(client).throttle_time_ms > 0
    clock.advance(11_000)
    with NamedClient(broker.port, "app") as client:
        assert send(client).throttle_time_ms == 0


def test_a_producer_that_wants_no_answers_is_not_heard_either(broker: BrokerThread) -> None:
    limit(broker, producer_byte_rate=100.0)
    with NamedClient(broker.port, "app") as client:
        client.send(produce_request(TOPIC, batch(b"x" * RECORD_BYTES), acks=0), PRODUCE_BY_NAME)
        with NamedClient(broker.port, "reader") as reader:
            fetched = read(reader, fetch_request(TOPIC, 0, max_wait_ms=20_000))
            assert len(fetched.responses[0].partitions[0].records or b"") > RECORD_BYTES
        assert muted_clients(broker) == 1


def test_a_producer_that_waits_for_a_flush_is_charged_when_it_is_answered(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, broker_clock=TickingClock()) as broker:
        with WireClient(broker.port) as client:
            create_topic(client, TOPIC, configs={"ottla.flush.before.ack": "true", "flush.messages": "1"})
        limit(broker, producer_byte_rate=100.0)
        with NamedClient(broker.port, "app") as client:
            assert send(client, acks=-1).throttle_time_ms > 0
            assert muted_clients(broker) == 1


def test_a_consumer_above_its_quota_gets_nothing_and_later_all_of_it(broker: BrokerThread, clock: TickingClock) -> None:
    with NamedClient(broker.port, "producer") as client:
        assert produce(client, TOPIC, batch(b"x" * RECORD_BYTES)).error_code == ErrorCode.NONE
    limit(broker, consumer_byte_rate=1500.0)
    with NamedClient(broker.port, "app") as client:
        assert len(read(client).responses[0].partitions[0].records or b"") > RECORD_BYTES
    for _ in range(3):
        with NamedClient(broker.port, "app") as client:
            held_back = read(client)
            assert held_back.throttle_time_ms == pytest.approx(3500, abs=300), "what is not sent is not charged"
            assert held_back.responses == []
    clock.advance(11_000)
    with NamedClient(broker.port, "app") as client:
        assert values(read(client).responses[0].partitions[0]) == [b"x" * RECORD_BYTES]


def test_a_session_goes_on_after_an_empty_answer(broker: BrokerThread, clock: TickingClock) -> None:
    """An incremental fetch that has to wait loses nothing: the next one of the session gives what it did not."""
    with NamedClient(broker.port, "producer") as client:
        produce(client, TOPIC, batch(b"first"))
    limit(broker, consumer_byte_rate=1500.0)

    def in_session(session_id: int, epoch: int, offset: int | None = None) -> FetchRequest:
        request = fetch_request(TOPIC, offset or 0)
        request.session_id, request.session_epoch = session_id, epoch
        if offset is None:
            request.topics = []
        return request

    with NamedClient(broker.port, "app") as client:
        opened = read(client, in_session(0, 0, 0))
        assert opened.session_id > 0
        assert values(opened.responses[0].partitions[0]) == [b"first"]
        with NamedClient(broker.port, "producer") as producer:
            produce(producer, TOPIC, batch(b"y" * 20_000))
        held_back = read(client, in_session(opened.session_id, 1, 1))
        assert (held_back.throttle_time_ms > 0, held_back.session_id) == (True, opened.session_id)
        assert held_back.responses == []
    clock.advance(HOUR_MS)
    limit(broker, consumer_byte_rate=3000.0)
    with NamedClient(broker.port, "app") as client:
        second = read(client, in_session(opened.session_id, 2))
        assert values(second.responses[0].partitions[0]) == [b"y" * 20_000]


def test_a_session_that_would_begin_with_an_empty_answer_does_not_begin(broker: BrokerThread) -> None:
    with NamedClient(broker.port, "producer") as client:
        produce(client, TOPIC, batch(b"x" * RECORD_BYTES))
    limit(broker, consumer_byte_rate=10.0)
    with NamedClient(broker.port, "app") as client:
        request = fetch_request(TOPIC, 0)
        request.session_epoch = 0
        assert (read(client, request).session_id, len(broker.broker.fetch_sessions)) == (0, 0)


def test_another_broker_reads_without_limit(broker: BrokerThread) -> None:
    limit(broker, consumer_byte_rate=1.0)
    with NamedClient(broker.port, "app") as client:
        request = fetch_request(TOPIC, 0)
        request.replica_id = 2
        answer = read(client, request)
        assert (answer.throttle_time_ms, len(answer.responses)) == (0, 1)


@pytest.mark.parametrize("version", [0, 5, 13])
def test_every_request_takes_time_of_the_processor(tmp_path: Path, clock: TickingClock, version: int) -> None:
    with BrokerThread(tmp_path, {"quota.window.size.seconds": "600"}, broker_clock=clock) as broker:
        limit(broker, request_percentage=0.001)
        clock.tick_seconds = 100.0
        with NamedClient(broker.port, "app") as client:
            answer = client.ask(MetadataRequest(topics=[]), MetadataResponse, version)
            clock.tick_seconds = 0.0
            assert answer.throttle_time_ms == (0 if version == 0 else 600_000), "no wait is longer than a window"
            assert muted_clients(broker) == 1


def test_a_fetch_that_waits_is_given_up_with_its_client(broker: BrokerThread) -> None:
    limit(broker, consumer_byte_rate=1e6)
    with NamedClient(broker.port, "gone") as client:
        client.send(fetch_request(TOPIC, 0, max_wait_ms=HOUR_MS), FETCH_BY_NAME)
        with NamedClient(broker.port, "app") as other:
            while not scrape(broker.broker).value(
                "kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch"
            ):
                pass
            client.close()
            while scrape(broker.broker).value(
                "kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch"
            ):
                pass
            assert produce(other, TOPIC, batch(b"goes on")).error_code == ErrorCode.NONE
            assert values(read(other).responses[0].partitions[0]) == [b"goes on"]


def test_a_fetch_that_waited_is_charged_for_what_came(broker: BrokerThread) -> None:
    limit(broker, consumer_byte_rate=100.0)
    with NamedClient(broker.port, "app") as client, NamedClient(broker.port, "producer") as producer:
        client.send(fetch_request(TOPIC, 0, max_wait_ms=20_000), FETCH_BY_NAME)
        produce(producer, TOPIC, batch(b"x" * RECORD_BYTES))
        answer = client.receive(fetch_request(TOPIC, 0), FetchResponse, FETCH_BY_NAME)
        assert answer.throttle_time_ms > 60_000
        assert answer.responses == []
        assert muted_clients(broker) == 1


def test_a_client_of_no_name_shares_the_quota_of_its_user(broker: BrokerThread) -> None:
    with NamedClient(broker.port, "operator") as operator:
        set_quota(operator, [("user", "ANONYMOUS")], producer_byte_rate=100.0)
    with NamedClient(broker.port, None) as client:
        assert send(client).throttle_time_ms > 0
    with NamedClient(broker.port, "app") as client:
        assert send(client, 1).throttle_time_ms > 0


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_changes_above_the_quota_are_refused_until_they_are_paid_off(broker: BrokerThread, clock: TickingClock) -> None:
    limit(broker, controller_mutation_rate=0.01)
    with NamedClient(broker.port, "app") as client:
        answer = client.ask(creation("first", 15), CreateTopicsResponse)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (ErrorCode.NONE, 0)
        refused = client.ask(creation("second", 1), CreateTopicsResponse)
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.throttle_time_ms == pytest.approx(1_489_000, abs=1)
        assert muted_clients(broker) == 1
    with NamedClient(broker.port, "app") as client:
        unknown = client.ask(
            MetadataRequest(topics=[MetadataRequestTopic(name="automatic")], allow_auto_topic_creation=True),
            MetadataResponse,
        )
        assert unknown.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        old = client.ask(creation("third", 2), CreateTopicsResponse, 5)
        assert old.topics[0].error_code == ErrorCode.NONE
        assert old.throttle_time_ms == pytest.approx(1_689_000, abs=1)
    clock.advance(1_689_001)
    with NamedClient(broker.port, "app") as client:
        assert client.ask(creation("second", 1), CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE


def test_connections_of_an_address_are_counted(broker: BrokerThread, clock: TickingClock) -> None:
    with NamedClient(broker.port, "operator") as operator:
        set_quota(operator, [("ip", "127.0.0.1")], connection_creation_rate=1.0)
        for _ in range(10):
            with NamedClient(broker.port, "app") as client:
                assert client.ask(MetadataRequest(topics=[]), MetadataResponse).brokers
        with NamedClient(broker.port, "app") as client:
            assert client.is_closed()
        set_quota(operator, [("ip", "127.0.0.1")], connection_creation_rate=None)
    with NamedClient(broker.port, "app") as client:
        assert client.ask(MetadataRequest(topics=[]), MetadataResponse).brokers


def test_a_quota_for_a_host_holds_for_its_address(broker: BrokerThread) -> None:
    with NamedClient(broker.port, "operator") as operator:
        set_quota(operator, [("ip", "localhost")], connection_creation_rate=1.0)
    addresses = broker.broker.quotas.connections._limits
    assert set(addresses) & {"127.0.0.1", "::1"}


def test_a_muted_client_does_not_keep_the_broker_from_ending(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker, NamedClient(broker.port, "app") as client:
        create_topic(client, TOPIC)
        limit(broker, producer_byte_rate=1.0)
        assert send(client).throttle_time_ms > HOUR_MS
        broker.stop()
        assert client.is_closed()


def test_quotas_hold_again_after_a_restart(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker:
        with NamedClient(broker.port, "app") as client:
            create_topic(client, TOPIC)
        limit(broker, producer_byte_rate=10.0)
        broker.restart()
        with NamedClient(broker.port, "app") as client:
            assert send(client).throttle_time_ms > 0


def test_the_windows_are_settings_of_the_broker(tmp_path: Path) -> None:
    properties = {"quota.window.num": "3", "quota.window.size.seconds": "5", "controller.quota.window.num": "2"}
    with BrokerThread(tmp_path, properties, broker_clock=TickingClock()) as broker:
        with NamedClient(broker.port, "app") as client:
            create_topic(client, TOPIC)
        limit(broker, producer_byte_rate=100.0, controller_mutation_rate=1.0)
        with NamedClient(broker.port, "app") as client:
            assert client.ask(creation("burst", 3), CreateTopicsResponse).throttle_time_ms == 0
            assert client.ask(creation("more", 1), CreateTopicsResponse).throttle_time_ms == 1000
        with NamedClient(broker.port, "app") as client:
            assert send(client, 2000).throttle_time_ms == wait_ms(2000, 100)


def test_what_clients_use_is_among_the_metrics(broker: BrokerThread) -> None:
    assert scrape(broker.broker).labels("kafka_server_produce_byte_rate") == set()
    limit(
        broker, producer_byte_rate=100.0, consumer_byte_rate=1e6, request_percentage=1e9, controller_mutation_rate=1e6
    )
    with NamedClient(broker.port, "app") as client:
        throttle_time_ms = send(client).throttle_time_ms
    with NamedClient(broker.port, "app") as client:
        read(client)
        client.ask(creation("counted", 3), CreateTopicsResponse)
    metrics = scrape(broker.broker)
    app = {"user": "", "client_id": "app"}
    assert metrics.value("kafka_server_produce_byte_rate", **app) == pytest.approx(RECORD_BYTES / 10, rel=0.05)
    assert metrics.value("kafka_server_produce_throttle_time", **app) == throttle_time_ms
    assert metrics.value("kafka_server_fetch_byte_rate", **app) > RECORD_BYTES / 10
    assert metrics.value("kafka_server_request_request_time", **app) == 0
    assert metrics.value("kafka_server_controllermutation_mutation_rate", **app) == 0.3
    assert metrics.value("kafka_server_controllermutation_tokens", **app) == 11e6 - 3
