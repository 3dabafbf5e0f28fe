"""An error that is scripted for an API is in every part of the answer that can carry one, in every version.

The questions are made from the declarations: two of everything that is asked for, each with a name of its own.
"""

import itertools
from collections.abc import Iterator
from random import Random

import pytest
from tests.property.protocol.samples import random_message
from tests.unit.broker.api.questions import batch, produce_request
from tests.unit.testing.parts import errors, named, sample
from tests.wire_client import WireClient

from ottla.broker import api
from ottla.broker.dispatch import Handler, registered_handlers
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.registry import BROKER_APIS, request_class
from ottla.testing import TestBroker
from ottla.testing.refusals import can_refuse, refuse_all_parts

assert api.__all__
HANDLERS = list(registered_handlers().values())
CODE = ErrorCode.POLICY_VIOLATION

# How many errors the newest version of an answer has when two of everything were asked for.
PARTS = {
    "PRODUCE": 4,
    "FETCH": 4,
    "LIST_OFFSETS": 4,
    "METADATA": 2,
    "FIND_COORDINATOR": 2,
    "API_VERSIONS": 1,
    "CREATE_TOPICS": 2,
    "DELETE_TOPICS": 2,
    "INIT_PRODUCER_ID": 1,
    "OFFSET_FOR_LEADER_EPOCH": 4,
    "DESCRIBE_CONFIGS": 2,
    "CREATE_PARTITIONS": 2,
    "DESCRIBE_CLUSTER": 1,
    "DESCRIBE_TOPIC_PARTITIONS": 2,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture(autouse=True)
def no_faults_left(broker: TestBroker) -> Iterator[None]:
    yield
    broker.faults.clear()


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.api_key.name)
def test_every_served_api_and_version(broker: TestBroker, handler: Handler) -> None:
    broker.faults.error(handler.api_key, CODE, times=None)
    assert broker.faults.pending(handler.api_key) is None
    for version in range(handler.min_version, handler.max_version + 1):
        request = sample(handler.request, version, itertools.count(1))
        with WireClient(broker.port) as client:
            answer = client.ask(request, Response, version)
        assert set(errors(answer)) == {CODE}, (version, answer)
        if version == handler.max_version and handler.api_key.name in PARTS:
            assert len(errors(answer)) == PARTS[handler.api_key.name], answer
            if len(errors(answer)) > 1:
                assert named(request) - _unanswered(request) <= named(answer)


def _unanswered(request: Request) -> set[object]:
    """Names in a question that no answer has: settings of topics, brokers of assignments, what a session forgets."""
    inner = [
        getattr(request, "forgotten_topics_data", []),
        *(
            getattr(part, one.name)
            for name in ("topics", "resources")
            for part in getattr(request, name, None) or ()
            for one in type(part).FIELDS
            if one.name in ("configs", "configuration_keys", "assignments")
        ),
    ]
    return {name for group in inner for name in named(group)}


@pytest.mark.parametrize("key", BROKER_APIS, ids=lambda key: key.name)
def test_every_api_that_is_declared_has_a_place_for_an_error(key: ApiKey) -> None:
    """So that an API that is served one day can be refused from its first day on."""
    cls = request_class(key)
    assert cls is not None
    random = Random(key)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        assert can_refuse(cls.RESPONSE, version)
        answer = refuse_all_parts(sample(cls, version, itertools.count(1)), version, CODE)
        assert set(errors(answer)) == {CODE}
        assert cls.RESPONSE.decode(answer.encode(version), version) is not None
        for _ in range(5):
            whatever = refuse_all_parts(random_message(cls, version, random), version, CODE)
            assert set(errors(whatever)) <= {CODE}
            whatever.encode(version)


def test_a_refused_batch_is_not_stored_and_acks_0_loses_its_connection(broker: TestBroker) -> None:
    broker.create_topic("refused")
    broker.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS", times=2)
    with WireClient(broker.port) as client:
        answer = client.ask(produce_request("refused", batch(b"one")), Response, 12)
        assert errors(answer) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        client.send(produce_request("refused", batch(b"two"), acks=0), 12)
        assert client.is_closed()
    assert broker.records("refused") == []
    assert broker.faults.pending("PRODUCE") == 0


def test_a_fetch_session_outlives_its_errors(broker: TestBroker) -> None:
    """An incremental fetch names no partitions: the error is for those of its session, and they are news afterwards."""
    broker.produce("session", "value")

    def ask(client: WireClient, session_id: int, epoch: int, *names: str) -> FetchResponse:
        topics = [
            FetchTopic(topic=name, partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=100)])
            for name in names
        ]
        request = FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics, max_wait_ms=0)
        return client.ask(request, FetchResponse, 12)

    with WireClient(broker.port) as client:
        session_id = ask(client, 0, 0, "session").session_id
        assert session_id
        broker.faults.error("FETCH", ErrorCode.NOT_LEADER_OR_FOLLOWER)
        refused = ask(client, session_id, 1)
        assert (refused.error_code, errors(refused.responses)) == (0, [ErrorCode.NOT_LEADER_OR_FOLLOWER])
        (topic,) = ask(client, session_id, 2).responses
        assert topic.partitions[0].high_watermark == 1
        assert ask(client, session_id, 3).responses == []
        broker.faults.error("FETCH", ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        lost = ask(client, session_id, 4)
        assert (lost.error_code, lost.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])
        broker.faults.error("FETCH", CODE)
        assert ask(client, session_id + 1, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_metadata_of_all_topics_has_an_error_for_each(broker: TestBroker) -> None:
    broker.produce("metadata-1", "value")
    broker.produce("metadata-2", "value")
    broker.faults.error("METADATA", ErrorCode.LEADER_NOT_AVAILABLE)
    with WireClient(broker.port) as client:
        answer = client.ask(MetadataRequest(topics=None), MetadataResponse)
        assert {topic.name for topic in answer.topics} == set(broker.topics())
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.LEADER_NOT_AVAILABLE}
        assert [(one.host, one.port) for one in answer.brokers] == [(broker.host, broker.port)]
        assert errors(client.ask(MetadataRequest(topics=None), MetadataResponse)) == []


def test_the_brokers_own_helpers_meet_no_faults(broker: TestBroker) -> None:
    served = {handler.api_key for handler in HANDLERS}
    before = {key: broker.faults.requests(key) for key in served}
    for key in served:
        broker.faults.error(key, CODE)
    broker.create_topic("untouched")
    broker.produce("untouched", "value")
    assert [record.value for record in broker.records("untouched")] == [b"value"]
    assert "untouched" in broker.topics()
    assert {key: broker.faults.requests(key) for key in served} == before


def test_what_is_scripted_wrongly_is_said(broker: TestBroker) -> None:
    faults = broker.faults
    for api_name in ("PRODUCE", "Produce", "produce", ApiKey.PRODUCE):
        assert faults.pending(api_name) == 0
    with pytest.raises(ValueError, match="did you mean CREATE_TOPICS"):
        faults.error("CreateTopic", CODE)
    with pytest.raises(ValueError, match="UPDATE_FEATURES is not served"):
        faults.error(ApiKey.UPDATE_FEATURES, CODE)
    with pytest.raises(ValueError, match="did you mean NOT_ENOUGH_REPLICAS"):
        faults.error("PRODUCE", "NOT_ENOUGH_REPLICA")
    with pytest.raises(ValueError, match="is no error"):
        faults.error("PRODUCE", ErrorCode.NONE)
    with pytest.raises(ValueError, match="times must be 1 or more"):
        faults.error("PRODUCE", CODE, times=0)
    with pytest.raises(ValueError, match="times must be 1 or more"):
        faults.fsync_fails(times=-1)
    with pytest.raises(ValueError, match="0 seconds or more"):
        faults.delay("PRODUCE", -1)
    with pytest.raises(ValueError, match='"before" or "after"'):
        faults.disconnect("PRODUCE", when="during")  # type: ignore[arg-type]
    assert faults.pending(ProduceRequest.API_KEY) == 0
