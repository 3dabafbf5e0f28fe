"""What clients are told when they change settings: a controller on a real store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from tests.unit.cluster.harness import RunningBroker, running_cluster

from ottla.cluster.config_changes import ConfigRules
from ottla.cluster.image import BrokerConfigs
from ottla.cluster.requests import AlterConfigsRequest, AlterConfigsResult, ConfigChange, ConfigOperation, NewTopic
from ottla.coordination.store import MAX_NODE_BYTES
from ottla.protocol.errors import ErrorCode, KafkaError

OK = ErrorCode.NONE
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


def refuse_big_threads(after: BrokerConfigs, node_id: int | None) -> None:
    if int(after.by_broker[node_id].get("num.io.threads", "1")) > 8:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "num.io.threads must be at most 8")


def with_topic(directory: Path, scenario: Callable[[RunningBroker], Awaitable[None]]) -> None:
    async def run() -> None:
        rules = ConfigRules(validate_broker=refuse_big_threads, broker_lists={"log.cleanup.policy": "delete"})
        async with running_cluster(directory, rules=rules) as cluster:
            broker = await cluster.start(0)
            await broker.controller.create_topics([NewTopic("t", 1, 1, configs={"retention.ms": "100"})])
            await scenario(broker)

    asyncio.run(run())


async def alter(
    broker: RunningBroker, *changes: ConfigChange, topic: str = "t", replaces_all: bool = False
) -> AlterConfigsResult:
    request = AlterConfigsRequest(topic, changes, replaces_all)
    [result] = await broker.controller.alter_topic_configs([request])
    assert (result.message is None) == (result.error == OK)
    return result


def test_settings_are_set_added_to_and_taken_back(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        def configs() -> Mapping[str, str]:
            return broker.image.topics["t"].configs

        assert (await alter(broker, ConfigChange("segment.bytes", "2000000"))).error == OK
        assert configs() == {"retention.ms": "100", "segment.bytes": "2000000"}
        assert (await alter(broker, ConfigChange("cleanup.policy", "compact", APPEND))).error == OK
        assert configs()["cleanup.policy"] == "delete,compact"
        assert (await alter(broker, ConfigChange("cleanup.policy", "compact,delete", APPEND))).error == OK
        assert configs()["cleanup.policy"] == "delete,compact"
        assert (await alter(broker, ConfigChange("cleanup.policy", "delete", SUBTRACT))).error == OK
        assert configs()["cleanup.policy"] == "compact"
        changes = [ConfigChange(name, None, DELETE) for name in ("cleanup.policy", "segment.bytes", "flush.ms")]
        assert (await alter(broker, *changes)).error == OK
        assert configs() == {"retention.ms": "100"}
        assert (await alter(broker, ConfigChange("flush.ms", "7"), replaces_all=True)).error == OK
        assert configs() == {"flush.ms": "7"}
        assert (await alter(broker, ConfigChange("flush.ms", None, DELETE))).error == OK
        assert configs() == {}
        assert await broker.session.children("/configs/topics") == []
        assert (await alter(broker, ConfigChange("retention.ms", "5"))).error == OK
        assert configs() == {"retention.ms": "5"}

    with_topic(tmp_path, scenario)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((ConfigChange("retention.ms", "soon"),), ErrorCode.INVALID_CONFIG),
        ((ConfigChange("no.such.setting", "1"),), ErrorCode.INVALID_CONFIG),
        ((ConfigChange("retention.ms", None),), ErrorCode.INVALID_REQUEST),
        ((ConfigChange("retention.ms", "1", APPEND),), ErrorCode.INVALID_CONFIG),
        ((ConfigChange("retention.ms", "1", SUBTRACT),), ErrorCode.INVALID_CONFIG),
        ((ConfigChange("cleanup.policy", "shred", APPEND),), ErrorCode.INVALID_CONFIG),
        ((ConfigChange("flush.ms", "1"), ConfigChange("retention.ms", "x")), ErrorCode.INVALID_CONFIG),
        ((ConfigChange("flush.ms", "1"), ConfigChange("flush.ms", None, DELETE)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_are_refused_change_nothing(
    tmp_path: Path, changes: tuple[ConfigChange, ...], expected: ErrorCode
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        before = broker.image
        assert (await alter(broker, *changes)).error == expected
        assert broker.image is before

    with_topic(tmp_path, scenario)


def test_each_resource_is_answered_for_itself_and_validate_only_writes_nothing(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        requests = [
            AlterConfigsRequest("missing", (ConfigChange("flush.ms", "1"),)),
            AlterConfigsRequest("t", (ConfigChange("flush.ms", "1"),)),
        ]
        expected = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, OK]
        before = broker.image
        results = await broker.controller.alter_topic_configs(requests, validate_only=True)
        assert [result.error for result in results] == expected
        assert broker.image is before
        results = await broker.controller.alter_topic_configs(requests)
        assert [result.error for result in results] == expected
        assert broker.image.topics["t"].configs["flush.ms"] == "1"

    with_topic(tmp_path, scenario)


def test_settings_of_brokers(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        requests = [
            AlterConfigsRequest("", (ConfigChange("num.io.threads", "2"),)),
            AlterConfigsRequest("0", (ConfigChange("log.cleanup.policy", "compact", APPEND),)),
            AlterConfigsRequest("7", (ConfigChange("num.io.threads", "2"),)),
            AlterConfigsRequest("zero", (ConfigChange("num.io.threads", "2"),)),
            AlterConfigsRequest("0", (ConfigChange("num.io.threads", "9"),)),
        ]
        results = await broker.controller.alter_broker_configs(requests)
        assert [(result.name, result.error) for result in results] == [
            ("", OK),
            ("0", OK),
            ("7", ErrorCode.BROKER_ID_NOT_REGISTERED),
            ("zero", ErrorCode.INVALID_REQUEST),
            ("0", ErrorCode.INVALID_CONFIG),
        ]
        assert broker.image.configs.of(0) == {"num.io.threads": "2", "log.cleanup.policy": "delete,compact"}
        assert broker.image.configs.of(1) == {"num.io.threads": "2"}
        [result] = await broker.controller.alter_broker_configs(
            [AlterConfigsRequest("", (ConfigChange("num.io.threads", None, DELETE),))]
        )
        assert result.error == OK
        assert broker.image.configs.defaults == {}

    with_topic(tmp_path, scenario)


def test_settings_that_no_node_holds_are_refused_alone(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.controller.create_topics([NewTopic("u", 1, 1)])
        replicas = ",".join(f"{number}:1" for number in range(MAX_NODE_BYTES // 4))
        requests = [
            AlterConfigsRequest("u", (ConfigChange("flush.ms", "1"),)),
            AlterConfigsRequest("t", (ConfigChange("leader.replication.throttled.replicas", replicas),)),
        ]
        results = await broker.controller.alter_topic_configs(requests)
        assert [result.error for result in results] == [OK, ErrorCode.INVALID_REQUEST]
        assert broker.image.topics["u"].configs == {"flush.ms": "1"}
        assert broker.image.topics["t"].configs == {"retention.ms": "100"}

    with_topic(tmp_path, scenario)


def test_by_default_no_broker_setting_can_be_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path) as cluster:
            broker = await cluster.start(0)
            [result] = await broker.controller.alter_broker_configs(
                [AlterConfigsRequest("0", (ConfigChange("num.io.threads", "2"),))]
            )
            assert result.error == ErrorCode.INVALID_REQUEST
            assert "num.io.threads" in (result.message or "")

    asyncio.run(scenario())
