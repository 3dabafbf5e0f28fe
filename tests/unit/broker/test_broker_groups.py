"""Groups through the life of a broker: restarts, kills, failed directories, internal topics."""

from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.config_questions import BROKER, TOPIC, by_name, describe
from tests.unit.broker.api.offset_questions import (
    commit,
    delete_groups,
    fetch_group,
    find_coordinator,
    list_groups,
    offsets_of,
)
from tests.unit.broker.api.questions import create_topic
from tests.unit.broker.test_broker_metrics import scrape
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

GROUP_TOPIC = "__consumer_offsets"
FEW = {"offsets.topic.num.partitions": "3"}


@pytest.mark.parametrize("is_killed", [False, True])
def test_offsets_outlive_the_broker(tmp_path: Path, is_killed: bool) -> None:
    with BrokerThread(tmp_path, FEW) as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t")
            for number in range(20):
                find_coordinator(client, f"group-{number}")
                commit(client, f"group-{number}", {"t": {0: number}})
            delete_groups(client, "group-7")
        (broker.kill if is_killed else broker.stop)()
        broker.start()
        with WireClient(broker.port) as client:
            for number in range(20):
                find_coordinator(client, f"group-{number}")
                expected = {("t", 0): number} if number != 7 else {}
                assert offsets_of(client, f"group-{number}") == expected
            assert len(list_groups(client)) == 19


def test_the_first_question_creates_the_topic_and_is_answered_at_once(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, FEW) as broker, WireClient(broker.port) as client:
        assert fetch_group(client, "g", {}).error_code == ErrorCode.NOT_COORDINATOR
        answer = client.ask(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 3)
        assert (answer.error_code, answer.node_id, answer.port) == (ErrorCode.NONE, 1, broker.port)
        assert offsets_of(client, "g") == {}
        (topic,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=GROUP_TOPIC)]), MetadataResponse).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 3)
        configs = by_name(describe(client, TOPIC, GROUP_TOPIC))
        assert configs["cleanup.policy"].value == "compact"
        assert configs["compression.type"].value == "producer"
        assert configs["segment.bytes"].value == "104857600"


def test_metadata_creates_the_topic_with_the_settings_of_groups(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, FEW) as broker, WireClient(broker.port) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=GROUP_TOPIC)], allow_auto_topic_creation=True)
        (topic,) = client.ask(request, MetadataResponse).topics
        assert len(topic.partitions) == 3


def test_the_settings_of_groups_are_the_brokers(tmp_path: Path) -> None:
    given = {"offsets.retention.minutes": "5", "group.initial.rebalance.delay.ms": "0"}
    with BrokerThread(tmp_path, given) as broker, WireClient(broker.port) as client:
        configs = by_name(describe(client, BROKER, "1"))
        assert configs["offsets.retention.minutes"].value == "5"
        assert configs["group.initial.rebalance.delay.ms"].value == "0"
        assert configs["offsets.topic.replication.factor"].value == "3"


def test_groups_are_counted(tmp_path: Path) -> None:
    watched = {**FEW, "ottla.http.listeners": "http://127.0.0.1:0"}
    with BrokerThread(tmp_path, watched) as broker, WireClient(broker.port) as client:
        create_topic(client, "t", partitions=2)
        for group in ("g", "h"):
            find_coordinator(client, group)
            commit(client, group, {"t": {0: 1, 1: 2}})
        delete_groups(client, "h")
        shown = scrape(broker.broker)
        prefix = "kafka_server_group_coordinator_metrics"
        assert shown.value("kafka_coordinator_group_groupmetadatamanager_numoffsets") == 2
        assert shown.value(f"{prefix}_group_count", protocol="classic") == 1
        assert shown.value(f"{prefix}_classic_group_count", state="Empty") == 1
        assert shown.value(f"{prefix}_offset_commit_total") == 4
        assert shown.value(f"{prefix}_num_partitions", state="active") == 3
