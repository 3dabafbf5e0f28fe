"""Every admin call of kafka-python that needs no group, no transaction and no security; what its user sees."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.contract import eventually
from tests.compat.clients.model import CREATE_TIME_MS, Message
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, TopicPartition
    from kafka import errors as kafka_errors
    from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, OffsetSpec

pytestmark = pytest.mark.timeout(120)

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
Needs = Callable[[ApiKey], None]


@pytest.fixture
def admin(broker: ServerProcess) -> Iterator[Any]:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield admin
    admin.close()


@pytest.fixture
def client(broker: ServerProcess) -> Iterator[KafkaPythonClient]:
    client = KafkaPythonClient(broker.bootstrap)
    yield client
    client.close()


def test_topics(admin: Any, topic: str) -> None:
    answer = admin.create_topics(
        {topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "5000"}}},
        wait_for_metadata=True,
    )
    (created,) = answer["topics"]
    assert (created["name"], created["error_code"], created["num_partitions"]) == (topic, 0, 2)
    assert created["replication_factor"] == 1
    configs = created["configs"]
    assert (configs["retention.ms"]["value"], configs["cleanup.policy"]["value"]) == ("5000", "delete")
    assert topic in admin.list_topics()
    (described,) = admin.describe_topics([topic])
    assert (described["name"], described["is_internal"], described["error_code"]) == (topic, False, 0)
    assert [(found["partition_index"], found["leader_id"], found["replica_nodes"], found["isr_nodes"])
            for found in described["partitions"]] == [(0, 1, [1], [1]), (1, 1, [1], [1])]  # fmt: skip
    assert uuid.UUID(str(described["topic_id"])) == uuid.UUID(str(created["topic_id"]))
    (by_id,) = admin.describe_topics([uuid.UUID(str(described["topic_id"]))])
    assert by_id["name"] == topic
    (deleted,) = admin.delete_topics([uuid.UUID(str(described["topic_id"]))])["topics"]
    assert (deleted["name"], deleted["error_code"]) == (topic, 0)
    eventually(lambda: topic in admin.list_topics(), False)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_partitions": 0, "replication_factor": 1}, kafka_errors.InvalidPartitionsError),
        ({"num_partitions": 1, "replication_factor": 2}, kafka_errors.InvalidReplicationFactorError),
        ({"num_partitions": 1, "configs": {"segment.bytes": "tiny"}}, kafka_errors.InvalidConfigurationError),
        ({"assignments": {0: [8]}}, kafka_errors.InvalidReplicationAssignmentError),
        ({"assignments": {1: [1]}}, kafka_errors.InvalidReplicationAssignmentError),
        ({"num_partitions": 1, "assignments": {0: [1]}}, kafka_errors.InvalidRequestError),
    ],
)
def test_topics_that_are_refused(admin: Any, topic: str, options: dict[str, Any], expected: type[Exception]) -> None:
    with pytest.raises(expected):
        admin.create_topics({topic: options})
    assert topic not in admin.list_topics()


def test_names_that_are_refused(admin: Any, topic: str) -> None:
    admin.create_topics([topic], wait_for_metadata=True)
    with pytest.raises(kafka_errors.TopicAlreadyExistsError):
        admin.create_topics([topic])
    with pytest.raises(kafka_errors.InvalidTopicError):
        admin.create_topics([f"{topic}*"])
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.delete_topics([f"{topic}-not-there"])
    (unknown,) = admin.delete_topics([f"{topic}-not-there"], raise_errors=False)["topics"]
    assert unknown["error_code"] == kafka_errors.UnknownTopicOrPartitionError.errno
    with pytest.raises(kafka_errors.UnknownTopicIdError):
        admin.delete_topics([uuid.uuid4()])


def test_partitions(admin: Any, topic: str) -> None:
    admin.create_topics([topic], wait_for_metadata=True)
    admin.create_partitions({topic: 3}, validate_only=True)
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 1
    admin.create_partitions({topic: {"count": 2, "assignments": [[1]]}})
    eventually(lambda: len(admin.describe_topics([topic])[0]["partitions"]), 2)
    with pytest.raises(kafka_errors.InvalidPartitionsError):
        admin.create_partitions({topic: 1})
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.create_partitions({f"{topic}-not-there": 5})


def test_pages_of_partitions(admin: Any, topic: str) -> None:
    admin.create_topics({topic: {"num_partitions": 5}}, wait_for_metadata=True)
    seen: list[int] = []
    cursor = None
    while True:
        page = admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
        (found,) = page["topics"]
        assert (found["name"], found["error_code"]) == (topic, 0)
        seen += [partition["partition_index"] for partition in found["partitions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        assert cursor == {"topic_name": topic, "partition_index": len(seen)}
    assert seen == [0, 1, 2, 3, 4]
    (unknown,) = admin.describe_topic_partitions([f"{topic}-not-there"])["topics"]
    assert (unknown["error_code"], unknown["partitions"]) == (kafka_errors.UnknownTopicOrPartitionError.errno, [])


def test_configs_are_changed_and_reset(admin: Any, topic: str) -> None:
    admin.create_topics([topic], wait_for_metadata=True)

    def changed() -> dict[str, str]:
        found = admin.describe_configs([ConfigResource(TOPIC, topic)])["topic"][topic]
        return {name: entry["value"] for name, entry in found.items() if "TOPIC" in entry["config_source"]}

    assert changed() == {}
    wanted = {"retention.ms": "7000", "cleanup.policy": (AlterConfigOp.APPEND, "compact")}
    assert admin.alter_configs([ConfigResource(TOPIC, topic, wanted)]) == {"topic": {topic: "OK"}}
    eventually(changed, {"retention.ms": "7000", "cleanup.policy": "delete,compact"})
    assert admin.alter_configs(
        [ConfigResource(TOPIC, topic, {"retention.ms": "1"})], validate_only=True
    ) == {"topic": {topic: "OK"}}  # fmt: skip
    admin.alter_configs([ConfigResource(TOPIC, topic, {"cleanup.policy": ("SUBTRACT", "delete")})])
    eventually(changed, {"retention.ms": "7000", "cleanup.policy": "compact"})
    assert admin.reset_configs([ConfigResource(TOPIC, topic, ["retention.ms"])]) == {"topic": {topic: "OK"}}
    eventually(changed, {"cleanup.policy": "compact"})
    # The older call replaces everything.
    admin.alter_configs([ConfigResource(TOPIC, topic, {"flush.ms": "9"})], incremental=False)
    eventually(lambda: "flush.ms" in changed(), True)


def test_configs_that_are_refused(admin: Any, topic: str) -> None:
    admin.create_topics([topic], wait_for_metadata=True)
    for resource, expected in (
        (ConfigResource(TOPIC, topic, {"retention.ms": "soon"}), kafka_errors.InvalidConfigurationError),
        (ConfigResource(TOPIC, topic, {"cleanup.policy": ("APPEND", "shred")}), kafka_errors.InvalidConfigurationError),
        (ConfigResource(TOPIC, f"{topic}-no", {"retention.ms": "5"}), kafka_errors.UnknownTopicOrPartitionError),
        (ConfigResource(BROKER, "1", {"node.id": "4"}), kafka_errors.InvalidRequestError),
    ):
        answer = admin.alter_configs([resource], raise_on_unknown=False)
        ((outcome,),) = [list(found.values()) for found in answer.values()]
        assert expected.__name__ in outcome
    with pytest.raises(ValueError, match=r"no\.such\.key"):
        admin.alter_configs([ConfigResource(TOPIC, topic, {"no.such.key": "1"})])


def test_where_a_setting_comes_from(admin: Any, topic: str) -> None:
    admin.create_topics({topic: {"configs": {"retention.bytes": "900"}}}, wait_for_metadata=True)
    found = admin.describe_configs([ConfigResource(TOPIC, topic)], include_synonyms=True, config_filter="all")
    entry = found["topic"][topic]["retention.bytes"]
    assert (entry["value"], entry["config_source"], entry["config_type"]) == ("900", "DYNAMIC_TOPIC_CONFIG", "LONG")
    assert [(synonym["name"], synonym["value"], synonym["source"]) for synonym in entry["synonyms"]] == [
        ("retention.bytes", "900", "DYNAMIC_TOPIC_CONFIG"),
        ("log.retention.bytes", "-1", "DEFAULT_CONFIG"),
    ]
    resources = admin.list_config_resources([TOPIC])
    assert topic in resources["topic"]
    assert admin.list_config_resources([BROKER])["broker"] == ["1"]


def test_offsets_by_every_spec(admin: Any, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic)
    for stamp in (5000, 9000, 7000):
        client.produce(topic, 0, [Message(b"x", timestamp_ms=CREATE_TIME_MS + stamp)])
    partition = TopicPartition(topic, 0)
    admin.delete_records({partition: 1})

    def ask(spec: Any) -> tuple[int, int, int] | None:
        found = admin.list_partition_offsets({partition: spec})[partition]
        return None if found is None else tuple(found)

    assert ask(OffsetSpec.EARLIEST) == (1, -1, 0)
    assert ask(OffsetSpec.LATEST) == (3, -1, 0)
    assert ask(OffsetSpec.MAX_TIMESTAMP) == (1, CREATE_TIME_MS + 9000, 0)
    assert ask(OffsetSpec.EARLIEST_LOCAL) == (1, -1, 0)
    assert ask(CREATE_TIME_MS + 6000) == (1, CREATE_TIME_MS + 9000, 0)
    assert ask(OffsetSpec.LATEST_TIERED) == ask(CREATE_TIME_MS + 9001)
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.list_partition_offsets({TopicPartition(topic, 4): OffsetSpec.LATEST}, timeout_ms=5000)


def test_log_directories(admin: Any, client: KafkaPythonClient, broker: ServerProcess, topic: str) -> None:
    client.create_topic(topic, partitions=2)
    client.produce(topic, 1, [Message(b"x" * 1000)])
    (answer,) = admin.describe_log_dirs({topic: [0, 1]})
    assert answer["broker"] == 1
    (directory,) = answer["log_dirs"]
    assert (directory["log_dir"], directory["error_code"]) == (str(broker.data_directory), 0)
    assert directory["total_bytes"] > directory["usable_bytes"] > 0
    (found,) = directory["topics"]
    assert found["name"] == topic
    sizes = {place["partition_index"]: place["partition_size"] for place in found["partitions"]}
    stored = sum(path.stat().st_size for path in broker.partition_directory(topic, 1).glob("*.log"))
    assert sizes == {0: 0, 1: stored}
    assert {(place["offset_lag"], place["is_future_key"]) for place in found["partitions"]} == {(0, False)}


def test_producers_of_a_partition(admin: Any, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic)
    client.produce(topic, 0, [Message(b"%d" % n, timestamp_ms=CREATE_TIME_MS + n) for n in range(5)], idempotent=True)
    partition = TopicPartition(topic, 0)
    (state,) = admin.describe_producers([partition])[partition].active_producers
    assert (state.producer_epoch, state.last_sequence, state.last_timestamp) == (0, 4, CREATE_TIME_MS + 4)
    assert (state.coordinator_epoch, state.current_transaction_start_offset) == (-1, -1)
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.describe_producers([TopicPartition(f"{topic}-not-there", 0)], broker_id=1)


def test_the_cluster(admin: Any, broker: ServerProcess) -> None:
    found = admin.describe_cluster()
    (node,) = found["brokers"]
    assert (node["broker_id"], node["port"], node["rack"]) == (1, broker.port, None)
    assert found["controller_id"] == 1
    assert admin.get_broker_version_data(1).api_versions[ApiKey.PRODUCE][1] == 13


def test_elections(admin: Any, topic: str, needs: Needs) -> None:
    needs(ApiKey.ELECT_LEADERS)
    admin.create_topics([topic], wait_for_metadata=True)
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.elect_leaders(0, {f"{topic}-not-there": [0]})
    answer = admin.elect_leaders(0, {topic: [0]})
    assert [error for _, [(_, error, _)] in [tuple(found)[:2] for found in answer.replica_election_results]] == [
        kafka_errors.ElectionNotNeededError.errno
    ]
