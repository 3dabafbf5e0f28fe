"""The same questions to Apache Kafka and to Ottla: the same quotas, the same errors, the same times to wait.

A client's first request is the one whose wait depends on nothing but its size, so its milliseconds are compared; each
of these clients is a new one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.broker_thread import BrokerThread
from tests.peers.kafka import KafkaBroker
from tests.peers.paths import PeerMissing
from tests.unit.broker.api.questions import batch, create_topic, fetch_request, produce, produce_request
from tests.unit.broker.api.quota_questions import (
    ANY_NAME,
    DEFAULT,
    EXACT,
    Changes,
    Component,
    NamedClient,
    Names,
    alter,
    describe,
    set_quota,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.produce import ProduceResponse

pytestmark = pytest.mark.timeout(120)

TOPIC, READ = "written", "read"
BARRIER = [("user", "barrier")]
ROUNDS = 120
PRODUCE_VERSION, FETCH_VERSION = 12, 12


@dataclass
class Pair:
    """A connection to each of the brokers."""

    kafka: WireClient
    ottla: WireClient
    ports: dict[str, int]
    numbers: Iterator[int]

    @property
    def clients(self) -> tuple[WireClient, WireClient]:
        return self.kafka, self.ottla

    def set(self, names: Names, **limits: float | None) -> None:
        """Change a quota on both. Kafka goes by it once it has gone on to the next change."""
        for client in self.clients:
            set_quota(client, names, **limits)
        mark = float(next(self.numbers))
        set_quota(self.kafka, BARRIER, request_percentage=mark)
        while describe(self.kafka, ("user", EXACT, "barrier"))[1] != [(BARRIER, {"request_percentage": mark})]:
            pass
        set_quota(self.ottla, BARRIER, request_percentage=mark)

    def newcomers(self, client_id: str) -> tuple[NamedClient, NamedClient]:
        return NamedClient(self.ports["kafka"], client_id), NamedClient(self.ports["ottla"], client_id)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    try:
        kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"), heap="512m")
    except PeerMissing as missing:
        pytest.skip(str(missing))
    with BrokerThread(tmp_path_factory.mktemp("ottla")) as ottla:
        kafka.start()
        assert kafka.port is not None
        ports = {"kafka": kafka.port, "ottla": ottla.port}
        with WireClient(kafka.port) as one, WireClient(ottla.port) as other:
            for client in (one, other):
                create_topic(client, TOPIC)
                create_topic(client, READ)
                assert produce(client, READ, batch(b"x" * 5000)).error_code == ErrorCode.NONE
            yield Pair(one, other, ports, itertools.count(1))
        kafka.stop()


def some_entity(dice: random.Random) -> Names:
    kinds = ("user", "client-id", "ip", "user", "client-id", "group", "")
    names = {
        # Names of hosts that have to be asked for somewhere would take seconds.
        "ip": (None, "", "10.0.0.1", "10.0.0.2", "::1", "localhost"),
    }
    others = (None, "a", "b", "", "*", "<default>", "ä/%,=")
    usual: tuple[Names, ...] = (
        [("user", "a")],
        [("user", None)],
        [("client-id", "a")],
        [("client-id", None), ("user", "b")],
        [("ip", "10.0.0.1")],
        [("ip", None)],
    )
    if dice.random() < 0.6:
        return dice.choice(usual)
    chosen = [dice.choice(kinds) for _ in range(dice.choice((0, 1, 1, 2, 2, 3)))]
    return [(kind, dice.choice(names.get(kind, others))) for kind in chosen]


def some_changes(dice: random.Random) -> Changes:
    keys = (
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
        "bogus",
        "",
    )
    values = (
        1.0,
        1024.0,
        0.5,
        1e-9,
        0.0,
        -1.0,
        1.0000001,
        2.0**31 - 1,
        2.0**31,
        2.0**63,
        1e19,
        float("inf"),
        None,
        None,
    )
    likely = dice.random() < 0.5
    changes = [
        (dice.choice(keys[:5] if likely else keys), dice.choice(values[:2] if likely else values))
        for _ in range(dice.choice((0, 1, 1, 1, 2, 3)))
    ]
    return [(key, _bearable(key, value)) for key, value in changes]


def _bearable(key: str, value: float | None) -> float | None:
    """Whoever asks the questions is held to these quotas too."""
    return value + 1e9 if value is not None and key == "request_percentage" and 0 < value < 1e9 else value


def some_component(dice: random.Random) -> Component:
    if dice.random() < 0.6:
        kind = dice.choice(("user", "client-id", "ip"))
        return dice.choice([(kind, EXACT, "a"), (kind, DEFAULT, None), (kind, ANY_NAME, None)])
    return (
        dice.choice(("user", "client-id", "ip", "", "group")),
        dice.choice((EXACT, DEFAULT, ANY_NAME, 3, -1)),
        dice.choice((None, "a", "")),
    )


@pytest.mark.parametrize("seed", range(2))
def test_quotas_are_changed_and_described_alike(pair: Pair, seed: int) -> None:
    dice = random.Random(f"quotas {seed}")
    for _ in range(ROUNDS):
        entries = [(some_entity(dice), some_changes(dice)) for _ in range(dice.choice((0, 1, 1, 1, 2, 4)))]
        validate_only, version = dice.random() < 0.2, dice.choice((0, 1))
        theirs, ours = (
            alter(client, *entries, validate_only=validate_only, version=version) for client in pair.clients
        )
        assert ours == theirs, entries
    pair.set([("user", "last")], producer_byte_rate=1.0)
    everything = describe(pair.kafka)
    assert describe(pair.ottla) == everything
    assert len(everything[1] or []) > 5
    for _ in range(ROUNDS):
        components = [some_component(dice) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
        strict, version = dice.random() < 0.5, dice.choice((0, 1))
        answers = [describe(client, *components, strict=strict, version=version) for client in pair.clients]
        assert answers[0] == answers[1], (components, strict)
    for client in pair.clients:
        for names, limits in describe(client)[1] or []:
            set_quota(client, names, **dict.fromkeys(limits, None))
    assert describe(pair.ottla)[1] == []
    while describe(pair.kafka)[1]:
        pass


@pytest.mark.parametrize("limit", [1.0, 17.0, 99.0])
def test_a_producer_waits_as_long(pair: Pair, limit: float) -> None:
    client_id = f"producer-{limit:.0f}"
    pair.set([("client-id", client_id)], producer_byte_rate=limit)
    theirs, ours = (first_produce(newcomer) for newcomer in pair.newcomers(client_id))
    assert ours == theirs
    assert theirs[0] > 0
    assert theirs[1] == ErrorCode.NONE


def first_produce(client: NamedClient) -> tuple[int, ErrorCode]:
    with client:
        answer = client.ask(produce_request(TOPIC, batch(b"y" * 1000)), ProduceResponse, PRODUCE_VERSION)
    ((partition,),) = (topic.partition_responses for topic in answer.responses)
    return answer.throttle_time_ms, ErrorCode(partition.error_code)


@pytest.mark.parametrize("limit", [1.0, 17.0, 100.0, 499.0, 500.0])
def test_a_consumer_gets_nothing_and_waits_as_long(pair: Pair, limit: float) -> None:
    client_id = f"consumer-{limit:.0f}"
    pair.set([("client-id", client_id)], consumer_byte_rate=limit)
    answers = []
    for newcomer in pair.newcomers(client_id):
        with newcomer:
            request = fetch_request(READ, 0)
            request.session_epoch = 0
            response = newcomer.ask(request, FetchResponse, FETCH_VERSION)
            read = [partition for topic in response.responses for partition in topic.partitions]
            answers.append((response.throttle_time_ms, response.error_code, response.session_id, len(read)))
    assert answers[0] == answers[1]
    assert answers[0][0] > 0
    assert answers[0][1:] == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize("limit", [600.0, 3000.0])
def test_a_consumer_below_its_quota_reads_as_much(pair: Pair, limit: float) -> None:
    client_id = f"modest-{limit:.0f}"
    pair.set([("client-id", client_id)], consumer_byte_rate=limit)
    answers = []
    for newcomer in pair.newcomers(client_id):
        with newcomer:
            response = newcomer.ask(fetch_request(READ, 0), FetchResponse, FETCH_VERSION)
            sizes = [len(partition.records or b"") for topic in response.responses for partition in topic.partitions]
            answers.append((response.throttle_time_ms, sizes))
    assert answers[0] == answers[1]
    assert answers[0][0] == 0
    assert answers[0][1][0] > 5000


def mutation_questions(port: int, prefix: str) -> Iterator[tuple[list[ErrorCode], bool]]:
    """Codes, and whether there is something to wait for, of changes that overdraw a quota of one partition a second."""

    def creation(*counts: int, validate_only: bool = False) -> CreateTopicsRequest:
        topics = [
            CreatableTopic(name=f"{prefix}-{count}", num_partitions=count, replication_factor=1) for count in counts
        ]
        return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)

    for request, version in (
        (creation(3, validate_only=True), 7),
        (creation(4, 30, 5), 7),
        (creation(6), 7),
        (creation(7, validate_only=True), 7),
        (creation(8), 5),
    ):
        with NamedClient(port, prefix) as other:
            created = other.ask(request, CreateTopicsResponse, version)
            yield [ErrorCode(topic.error_code) for topic in created.topics], created.throttle_time_ms > 0
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=f"{prefix}-4", count=5, assignments=None)], timeout_ms=10_000
    )
    for version in (3, 2):
        with NamedClient(port, prefix) as other:
            grown = other.ask(more, CreatePartitionsResponse, version)
            yield [ErrorCode(result.error_code) for result in grown.results], grown.throttle_time_ms > 0
    names = DeleteTopicsRequest(topic_names=[f"{prefix}-4"], timeout_ms=10_000)
    by_name = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"{prefix}-30")], timeout_ms=10_000)
    for deletion, version in ((by_name, 6), (names, 5), (names, 4)):
        with NamedClient(port, prefix) as other:
            deleted = other.ask(deletion, DeleteTopicsResponse, version)
            yield [ErrorCode(result.error_code) for result in deleted.responses], deleted.throttle_time_ms > 0


def test_changes_of_the_cluster_are_refused_alike(pair: Pair) -> None:
    client_id = "changer"
    pair.set([("client-id", client_id)], controller_mutation_rate=1.0)
    theirs, ours = (list(mutation_questions(pair.ports[name], client_id)) for name in ("kafka", "ottla"))
    assert ours == theirs
    assert [ErrorCode.THROTTLING_QUOTA_EXCEEDED] in [codes for codes, _ in theirs]
