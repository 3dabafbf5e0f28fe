"""What is written in nodes can be read again, and what is not understood is refused."""

import json
from dataclasses import replace

import pytest
from tests.unit.cluster.harness import registration_of

from ottla.cluster import registry
from ottla.cluster.image import Endpoint, PartitionImage
from ottla.cluster.registry import ControllerRecord, CorruptNode, PartitionState
from ottla.coordination.store import Node

TOPIC_ID = bytes(range(16))


def node(data: bytes, path: str = "/topics/t", version: int = 3) -> Node:
    return Node(path, data, version, 70, 80, False)


def test_a_broker_is_read_as_it_was_registered_under_the_epoch_of_its_commit() -> None:
    endpoints = (Endpoint("INTERNAL", "::1", 9092, "SASL_SSL"), Endpoint("EXTERNAL", "höst.example", 9093))
    registration = replace(
        registration_of(7, rack="r1", is_shutting_down=True),
        endpoints=endpoints,
        offline_partitions={TOPIC_ID: (0, 3), bytes(range(1, 17)): (1,)},
    )
    read = registry.decode_broker(node(registry.encode_broker(registration), "/brokers/ids/7"))
    assert read == replace(registration, epoch=70, is_fenced=True)


def test_topics_and_states_are_read_as_they_were_written() -> None:
    topic = registry.decode_topic(node(registry.encode_topic(TOPIC_ID, [(1, 2), (2, 3)])))
    assert (topic.topic_id, topic.assignment, topic.node_version) == (TOPIC_ID, ((1, 2), (2, 3)), 3)
    partitions = [PartitionImage(0, 1, 4, (1, 2), (1, 2), 9), PartitionImage(1, -1, 5, (2, 3), (3,), 6)]
    state = registry.decode_state(node(registry.encode_state(TOPIC_ID, 12, partitions)))
    assert (state.topic_id, state.node_version) == (TOPIC_ID, 3)
    assert state.partitions == (PartitionState(1, 4, 9, (1, 2)), PartitionState(-1, 5, 6, (3,)))


def test_small_nodes_are_read_as_they_were_written() -> None:
    assert registry.decode_admitted(node(registry.encode_admitted({3: 9, 1: 4}))) == {1: 4, 3: 9}
    record = ControllerRecord(2, 17, 99)
    assert registry.decode_controller(node(registry.encode_controller(record))) == record
    assert registry.decode_counter(node(registry.encode_counter("epoch", 5)), "epoch") == 5
    configs = {"retention.ms": "1", "cleanup.policy": "compact"}
    assert registry.decode_configs(node(registry.encode_configs(configs))) == configs
    assert registry.decode_cluster_id(node(registry.encode_cluster_id("abc"))) == "abc"


def document(**fields: object) -> bytes:
    return json.dumps({"version": 1, **fields}).encode()


TOPIC_ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def broker_document(**fields: object) -> bytes:
    return document(endpoints=[], rack=None, is_shutting_down=False, incarnation_id=TOPIC_ID_TEXT, **fields)


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (registry.decode_topic, b""),
        (registry.decode_topic, b"\xff\xfe"),
        (registry.decode_topic, b"[]"),
        (registry.decode_topic, b'{"topic_id": "x"}'),
        (registry.decode_topic, json.dumps({"version": 2}).encode()),
        (registry.decode_topic, document(topic_id="short", partitions=1, assignment=[[1]])),
        (registry.decode_topic, document(topic_id=TOPIC_ID_TEXT, partitions=2, assignment=[[1]])),
        (registry.decode_topic, document(topic_id=TOPIC_ID_TEXT, partitions=0, assignment=[])),
        (registry.decode_topic, document(topic_id=TOPIC_ID_TEXT, partitions=1, assignment=[[]])),
        (registry.decode_topic, document(topic_id=TOPIC_ID_TEXT, partitions=1, assignment=[["1"]])),
        (registry.decode_topic, document(topic_id=TOPIC_ID_TEXT, partitions=1, assignment=[[True]])),
        (registry.decode_state, document(topic_id=TOPIC_ID_TEXT, partitions=[[1, 2, 3]])),
        (registry.decode_state, document(topic_id=TOPIC_ID_TEXT, partitions=[[1, 2, 3, 4]])),
        (registry.decode_state, document(topic_id=TOPIC_ID_TEXT, partitions=[[1, None, 3, [1]]])),
        (registry.decode_state, document(topic_id=TOPIC_ID_TEXT, partitions=["leader"])),
        (registry.decode_state, document(partitions=[])),
        (registry.decode_configs, document(configs={"a": 1})),
        (registry.decode_configs, document(configs=[])),
        (registry.decode_admitted, document(epochs={"x": 1})),
        (registry.decode_admitted, document(epochs={"1": "1"})),
        (registry.decode_broker, document(endpoints=[], rack=1)),
        (registry.decode_broker, document(endpoints=[], rack=None, is_shutting_down=False, incarnation_id="?")),
        (registry.decode_broker, document(endpoints=["x"], rack=None)),
        (registry.decode_broker, broker_document(offline_partitions=[])),
        (registry.decode_broker, broker_document(offline_partitions={"short": [1]})),
        (registry.decode_broker, broker_document(offline_partitions={TOPIC_ID_TEXT: ["1"]})),
        (registry.decode_broker, broker_document(offline_partitions={TOPIC_ID_TEXT: 1})),
        (registry.decode_broker, document(endpoints=[{"name": "A", "host": "h", "port": "9092"}], rack=None)),
        (registry.decode_controller, document(broker_id=1)),
    ],
)
def test_what_is_not_understood_is_refused_with_the_path(decode: object, data: bytes) -> None:
    assert callable(decode)
    with pytest.raises(CorruptNode, match=r"^/any/7: "):
        decode(node(data, "/any/7"))


def test_a_broker_is_registered_under_its_id() -> None:
    data = registry.encode_broker(registration_of(7))
    with pytest.raises(CorruptNode, match="is its id"):
        registry.decode_broker(node(data, "/brokers/ids/seven"))
