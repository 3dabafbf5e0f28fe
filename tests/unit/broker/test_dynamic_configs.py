"""Settings that are changed while the broker runs: they reach the running parts and outlive the broker."""

from pathlib import Path

from tests.broker_thread import BrokerThread
from tests.peers.ottla import OttlaBroker
from tests.unit.broker.api.config_questions import (
    ALL_BROKERS,
    BROKER,
    DELETE,
    FROM_ALL_BROKERS,
    FROM_BROKER,
    FROM_DEFAULT,
    FROM_STATIC_BROKER,
    SET,
    THIS_BROKER,
    TOPIC,
    change,
    described,
    layers,
    own_settings,
)
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

OK = ErrorCode.NONE


def is_let_in(port: int) -> bool:
    with WireClient(port) as client:
        try:
            return client.ask(DescribeClusterRequest(), DescribeClusterResponse).error_code == OK
        except (EOFError, ConnectionError):
            return False


def test_connections_from_one_address(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert is_let_in(running.port)
        assert change(client, BROKER, ALL_BROKERS, ("max.connections.per.ip", SET, "1")) == OK
        assert not is_let_in(running.port)
        assert change(client, BROKER, THIS_BROKER, ("max.connections.per.ip.overrides", SET, "127.0.0.1:5")) == OK
        assert is_let_in(running.port)
        assert change(client, BROKER, THIS_BROKER, ("max.connections.per.ip.overrides", DELETE, None)) == OK
        assert not is_let_in(running.port)
        assert change(client, BROKER, ALL_BROKERS, ("max.connections.per.ip", DELETE, None)) == OK
        assert is_let_in(running.port)


def test_those_who_wait_for_a_connection_are_let_in_when_there_may_be_more(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert change(client, BROKER, ALL_BROKERS, ("max.connections", SET, "1")) == OK
        with WireClient(running.port) as waiting:
            waiting.send(DescribeClusterRequest())
            assert running.broker.settings.config.limits.connections == 1
            assert change(client, BROKER, ALL_BROKERS, ("max.connections", SET, "2")) == OK
            assert waiting.receive(DescribeClusterRequest(), DescribeClusterResponse).error_code == OK


def test_a_limit_of_connections_that_is_not_one(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        key = "max.connections.per.ip.overrides"
        for value in ("127.0.0.1", "127.0.0.1:many", ":5"):
            assert change(client, BROKER, ALL_BROKERS, (key, SET, value)) == ErrorCode.INVALID_REQUEST
        assert running.broker.image.configs.defaults == {}


def test_how_long_producers_are_remembered(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert change(client, BROKER, ALL_BROKERS, ("producer.id.expiration.ms", SET, "5000")) == OK
        assert running.broker._logs.settings.producer_id_expiration_ms == 5000
        assert change(client, BROKER, ALL_BROKERS, ("producer.id.expiration.ms", DELETE, None)) == OK
        assert running.broker._logs.settings.producer_id_expiration_ms == 86_400_000


def test_static_settings_lie_beneath(tmp_path: Path) -> None:
    properties = {"log.index.interval.bytes": "1000"}
    with BrokerThread(tmp_path, properties) as running, WireClient(running.port) as client:
        key = "log.index.interval.bytes"
        assert change(client, BROKER, THIS_BROKER, (key, SET, "2000")) == OK
        assert change(client, BROKER, ALL_BROKERS, (key, SET, "3000")) == OK
        assert layers(client, BROKER, THIS_BROKER, key) == [
            (key, "2000", FROM_BROKER),
            (key, "3000", FROM_ALL_BROKERS),
            (key, "1000", FROM_STATIC_BROKER),
            (key, "4096", FROM_DEFAULT),
        ]


def test_a_layer_that_is_hidden_now_must_be_valid_too(tmp_path: Path) -> None:
    """When the nearer layer goes, the one beneath it is in force."""
    smallest, largest = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        assert change(client, BROKER, ALL_BROKERS, (largest, SET, "100")) == OK
        assert change(client, BROKER, THIS_BROKER, (smallest, SET, "101")) == ErrorCode.INVALID_REQUEST
        assert change(client, BROKER, THIS_BROKER, (smallest, SET, "99")) == OK
        assert change(client, BROKER, ALL_BROKERS, (largest, SET, "98")) == ErrorCode.INVALID_REQUEST


def test_a_default_that_does_not_fit_a_topic_leaves_the_topic_usable(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        create_topic(client, "topic", configs={"min.compaction.lag.ms": "1000", "retention.ms": "5"})
        assert change(client, BROKER, ALL_BROKERS, ("log.cleaner.max.compaction.lag.ms", SET, "10")) == OK
        config = running.broker.replicas.partition("topic", 0).log.config
        assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms, config.retention_ms) == (0, 10, 5)
        assert own_settings(client, "topic") != {}


def check_kept(client: WireClient) -> None:
    assert own_settings(client, "topic") == {"retention.ms": "12345"}
    assert described(client, TOPIC, "topic", "segment.bytes") == ("2000000", FROM_ALL_BROKERS)
    assert described(client, BROKER, THIS_BROKER, "log.index.interval.bytes") == ("77", FROM_BROKER)
    assert described(client, BROKER, THIS_BROKER, "no.such.key") == (None, FROM_BROKER)


def make_changes(client: WireClient) -> None:
    create_topic(client, "topic", configs={"flush.ms": "1"})
    assert change(client, TOPIC, "topic", ("retention.ms", SET, "12345"), ("flush.ms", DELETE, None)) == OK
    assert change(client, BROKER, ALL_BROKERS, ("log.segment.bytes", SET, "2000000")) == OK
    own = (("log.index.interval.bytes", SET, "77"), ("no.such.key", SET, "x"), ("max.connections.per.ip", SET, "3"))
    assert change(client, BROKER, THIS_BROKER, *own) == OK
    check_kept(client)


def test_a_restart_keeps_them(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        make_changes(client)
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        check_kept(client)
        config = running.broker.replicas.partition("topic", 0).log.config
        assert (config.retention_ms, config.segment_bytes, config.index_interval_bytes) == (12345, 2_000_000, 77)
        assert running.broker._server.limits.connections_per_address == 3


def test_a_kill_keeps_them(tmp_path: Path) -> None:
    broker = OttlaBroker(tmp_path).start()
    try:
        assert broker.port is not None
        with WireClient(broker.port) as client:
            make_changes(client)
        broker.kill()
        broker.start()
        with WireClient(broker.port) as client:
            check_kept(client)
        assert broker.stop() == 0
    finally:
        broker.kill()


def test_what_no_longer_fits_the_static_settings_is_left_out(tmp_path: Path) -> None:
    """Whoever edits server.properties while the broker is down must still be able to start it."""
    largest = "log.cleaner.max.compaction.lag.ms"
    with BrokerThread(tmp_path) as running, WireClient(running.port) as client:
        changes = ((largest, SET, "100"), ("log.index.interval.bytes", SET, "77"))
        assert change(client, BROKER, ALL_BROKERS, *changes) == OK
    static = {"log.cleaner.min.compaction.lag.ms": "1000"}
    with BrokerThread(tmp_path, static) as running, WireClient(running.port) as client:
        create_topic(client, "topic")
        config = running.broker.replicas.partition("topic", 0).log.config
        assert (config.min_compaction_lag_ms, config.index_interval_bytes) == (1000, 77)
        assert config.max_compaction_lag_ms == 2**63 - 1
        assert change(client, BROKER, ALL_BROKERS, (largest, DELETE, None)) == OK
        assert running.broker.image.configs.defaults == {"log.index.interval.bytes": "77"}
