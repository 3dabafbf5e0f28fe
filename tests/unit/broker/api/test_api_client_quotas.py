"""DescribeClientQuotas and AlterClientQuotas on the wire; tests/compat/quotas asks Apache Kafka the same questions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.quota_questions import (
    ANY_NAME,
    DEFAULT,
    EXACT,
    Component,
    Entries,
    Names,
    alter,
    alter_request,
    describe,
    set_quota,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

APP = [("client-id", "app")]
ALICE = [("user", "alice")]
BOTH = [("client-id", "app"), ("user", "alice")]
ANYBODY: Names = [("user", None)]
ADDRESS = [("ip", "10.0.0.1")]


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    """A broker for these tests alone: its quotas are for everybody."""
    with BrokerThread(tmp_path_factory.mktemp("quotas")) as broker, WireClient(broker.port) as client:
        yield client


@pytest.fixture
def quotas(connected: WireClient) -> Iterator[WireClient]:
    yield connected
    for names, limits in everything(connected):
        set_quota(connected, names, **dict.fromkeys(limits, None))


def everything(client: WireClient) -> Entries:
    code, entries = describe(client)
    assert code == ErrorCode.NONE
    assert entries is not None
    return entries


def test_quotas_are_set_changed_and_removed(quotas: WireClient) -> None:
    assert everything(quotas) == []
    set_quota(quotas, APP, producer_byte_rate=1024.0, consumer_byte_rate=2048.0)
    set_quota(quotas, APP, consumer_byte_rate=4096.0)
    assert everything(quotas) == [(APP, {"consumer_byte_rate": 4096.0, "producer_byte_rate": 1024.0})]
    set_quota(quotas, APP, producer_byte_rate=None)
    assert everything(quotas) == [(APP, {"consumer_byte_rate": 4096.0})]
    set_quota(quotas, APP, consumer_byte_rate=None)
    assert everything(quotas) == []
    set_quota(quotas, APP, consumer_byte_rate=None)


def test_one_request_changes_many_and_each_is_answered_for_itself(quotas: WireClient) -> None:
    answered = alter(
        quotas,
        (APP, [("producer_byte_rate", 1.0)]),
        (ALICE, [("producer_byte_rate", -1.0), ("consumer_byte_rate", 5.0)]),
        (ADDRESS, [("connection_creation_rate", 5.0)]),
    )
    assert answered == [
        (APP, ErrorCode.NONE),
        (ADDRESS, ErrorCode.NONE),
        (ALICE, ErrorCode.INVALID_REQUEST),
    ]
    assert everything(quotas) == [
        (APP, {"producer_byte_rate": 1.0}),
        (ADDRESS, {"connection_creation_rate": 5.0}),
    ]


def test_nothing_changes_when_it_is_only_checked(quotas: WireClient) -> None:
    assert alter(quotas, (APP, [("producer_byte_rate", 1.0)]), validate_only=True) == [(APP, ErrorCode.NONE)]
    refused = alter(quotas, (APP, [("bogus", 1.0)]), validate_only=True)
    assert refused == [(APP, ErrorCode.INVALID_REQUEST)]
    assert everything(quotas) == []


def test_what_is_named_twice_is_refused_and_the_first_stands(quotas: WireClient) -> None:
    answered = alter(quotas, (APP, [("producer_byte_rate", 1.0)]), (APP, [("producer_byte_rate", 2.0)]))
    assert answered == [(APP, ErrorCode.INVALID_REQUEST)]
    assert everything(quotas) == [(APP, {"producer_byte_rate": 1.0})]
    twice = alter(quotas, (ALICE, [("producer_byte_rate", 1.0), ("producer_byte_rate", 1.0)]))
    assert twice == [(ALICE, ErrorCode.INVALID_REQUEST)]


@pytest.mark.parametrize(
    ("names", "key", "value"),
    [
        ([], "producer_byte_rate", 1.0),
        ([("group", "g")], "producer_byte_rate", 1.0),
        ([("user", "")], "producer_byte_rate", 1.0),
        ([("ip", "10.0.0.1"), ("user", "alice")], "connection_creation_rate", 1.0),
        ([("ip", "not an address")], "connection_creation_rate", 1.0),
        (ADDRESS, "producer_byte_rate", 1.0),
        (ADDRESS, "connection_creation_rate", 2.5),
        (ADDRESS, "connection_creation_rate", 2.0**31),
        (APP, "connection_creation_rate", 1.0),
        (APP, "producer_byte_rate", 0.0),
        (APP, "producer_byte_rate", 0.5),
        (APP, "producer_byte_rate", 1e19),
        (APP, "request_percentage", 0.0),
    ],
)
def test_what_makes_no_sense_is_refused(quotas: WireClient, names: Names, key: str, value: float) -> None:
    ((_, code),) = alter(quotas, (names, [(key, value)]))
    assert code == ErrorCode.INVALID_REQUEST
    assert everything(quotas) == []


def test_too_many_changes_at_once_are_refused(quotas: WireClient) -> None:
    request = alter_request(*(([("user", str(number))], [("producer_byte_rate", 1.0)]) for number in range(10_001)))
    answer = quotas.ask(request, AlterClientQuotasResponse)
    assert {entry.error_code for entry in answer.entries} == {ErrorCode.POLICY_VIOLATION}
    assert len(answer.entries) == 10_001
    assert everything(quotas) == []


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [APP, BOTH, ALICE, ANYBODY, ADDRESS]),
        ([], True, []),
        ([("user", EXACT, "alice")], False, [BOTH, ALICE]),
        ([("user", EXACT, "alice")], True, [ALICE]),
        ([("user", DEFAULT, None)], False, [ANYBODY]),
        ([("user", ANY_NAME, None)], False, [BOTH, ALICE, ANYBODY]),
        ([("user", ANY_NAME, None)], True, [ALICE, ANYBODY]),
        ([("user", ANY_NAME, None), ("client-id", EXACT, "app")], True, [BOTH]),
        ([("ip", ANY_NAME, None)], True, [ADDRESS]),
        ([("user", EXACT, "bob")], False, []),
    ],
)
def test_a_filter_lets_through(
    quotas: WireClient, components: list[Component], strict: bool, found: list[Names]
) -> None:
    for names in (APP, BOTH, ALICE, ANYBODY):
        set_quota(quotas, names, request_percentage=1e9)
    set_quota(quotas, ADDRESS, connection_creation_rate=7.0)
    for version in (0, 1):
        code, entries = describe(quotas, *components, strict=strict, version=version)
        assert code == ErrorCode.NONE
        assert [names for names, _ in entries or []] == sorted(found, key=repr)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY_NAME, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("ip", EXACT, "10.0.0.1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense(quotas: WireClient, components: list[Component], code: ErrorCode) -> None:
    assert describe(quotas, *components) == (code, None)


def test_quotas_outlive_the_broker_and_odd_names_too(tmp_path: Path) -> None:
    odd: Names = [("client-id", "<default>"), ("user", "ä/%,=\n")]
    names: list[Names] = [APP, odd, [("client-id", None), ("user", "ä/%,=\n")]]
    with BrokerThread(tmp_path) as broker:
        with WireClient(broker.port) as client:
            for limit, entity in enumerate(names, 1):
                set_quota(client, entity, controller_mutation_rate=limit + 0.5)
            before = everything(client)
        broker.kill()
        broker.start()
        with WireClient(broker.port) as client:
            assert everything(client) == before
    assert len(before) == len(names)


def test_nobody_has_a_password(quotas: WireClient) -> None:
    def ask(*names: str) -> dict[str, ErrorCode]:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
        answer = quotas.ask(request, DescribeUserScramCredentialsResponse)
        assert answer.error_code == ErrorCode.NONE
        return {result.user: ErrorCode(result.error_code) for result in answer.results}

    assert ask() == {}
    assert ask("a", "b", "a") == {"a": ErrorCode.DUPLICATE_RESOURCE, "b": ErrorCode.RESOURCE_NOT_FOUND}
