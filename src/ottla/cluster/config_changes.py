"""Decisions about settings of topics and brokers. Pure functions of an image and requests.

Checked is what would be in force afterwards, all of it: two settings that are fine alone may not be so together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.cluster import paths, registry
from ottla.cluster.image import NO_NODE_VERSION, ClusterImage
from ottla.cluster.requests import (
    AlterConfigsRequest,
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    Decision,
)
from ottla.coordination.store import Create, Delete, Operation, Set
from ottla.log.config import TOPIC_CONFIGS, ConfigType, LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError

Validator = Callable[[Mapping[str, str]], object]


def _topic_lists() -> dict[str, str]:
    return {name: key.format(key.default) for name, key in TOPIC_CONFIGS.items() if key.type is ConfigType.LIST}


def _refuse_broker_configs(configs: Mapping[str, str]) -> None:
    if configs:
        message = f"These settings cannot be changed while the broker runs: {', '.join(sorted(configs))}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """Which settings are valid. The validators raise `KafkaError`; lists are settings that APPEND can add to, with
    the value they have when nothing is set."""

    validate_topic: Validator = LogConfig.from_properties
    validate_broker: Validator = _refuse_broker_configs
    topic_lists: Mapping[str, str] = field(default_factory=_topic_lists)
    broker_lists: Mapping[str, str] = field(default_factory=dict)


def alter_topic_configs(
    image: ClusterImage, requests: Sequence[AlterConfigsRequest], rules: ConfigRules
) -> list[Decision[AlterConfigsResult]]:
    return [_alter_topic(image, request, rules) for request in requests]


def _alter_topic(image: ClusterImage, request: AlterConfigsRequest, rules: ConfigRules) -> Decision[AlterConfigsResult]:
    try:
        topic = image.topics.get(request.name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{request.name}'.")
        configs = altered(topic.configs, request, rules.topic_lists)
        rules.validate_topic(configs)
        operations = _write(paths.topic_config(topic.name), topic.configs, configs, topic.config_version)
        return Decision(AlterConfigsResult(request.name), operations)
    except KafkaError as error:
        return Decision(AlterConfigsResult(request.name, error.code, error.message))


def alter_broker_configs(
    image: ClusterImage, requests: Sequence[AlterConfigsRequest], rules: ConfigRules
) -> list[Decision[AlterConfigsResult]]:
    return [_alter_broker(image, request, rules) for request in requests]


def _alter_broker(
    image: ClusterImage, request: AlterConfigsRequest, rules: ConfigRules
) -> Decision[AlterConfigsResult]:
    try:
        node_id = _broker_id(image, request.name)
        before = image.configs.by_broker.get(node_id, {})
        configs = altered(before, request, rules.broker_lists)
        rules.validate_broker(configs)
        version = image.configs.versions.get(node_id, NO_NODE_VERSION)
        operations = _write(paths.broker_config(node_id), before, configs, version)
        return Decision(AlterConfigsResult(request.name), operations)
    except KafkaError as error:
        return Decision(AlterConfigsResult(request.name, error.code, error.message))


def _broker_id(image: ClusterImage, name: str) -> int | None:
    if name == "":
        return None
    if not name.isdecimal():
        message = f"Node id must be a non-negative integer or empty for all brokers, but it is: {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if int(name) not in image.brokers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")
    return int(name)


def altered(configs: Mapping[str, str], request: AlterConfigsRequest, lists: Mapping[str, str]) -> dict[str, str]:
    """The settings after the changes, not yet validated."""
    names = [change.name for change in request.changes]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        message = f"Each setting may be changed once in a request, these came more often: {', '.join(repeated)}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    result = {} if request.replaces_all else dict(configs)
    for change in request.changes:
        value = _new_value(change, result.get(change.name), lists)
        if value is None:
            result.pop(change.name, None)
        else:
            result[change.name] = value
    return result


def _new_value(change: ConfigChange, current: str | None, lists: Mapping[str, str]) -> str | None:
    if change.operation is ConfigOperation.DELETE:
        return None
    if change.value is None:
        message = f"Null value not supported for {change.operation.name} of {change.name}."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    if change.operation is ConfigOperation.SET:
        return change.value
    default = lists.get(change.name)
    if default is None:
        message = f"Can't {change.operation.name} to key {change.name} because its type is not LIST."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    members = [member for member in (default if current is None else current).split(",") if member]
    given = change.value.split(",")
    if change.operation is ConfigOperation.APPEND:
        members.extend(member for member in dict.fromkeys(given) if member not in members)
    else:
        members = [member for member in members if member not in given]
    return ",".join(members)


def _write(path: str, before: Mapping[str, str], after: Mapping[str, str], node_version: int) -> tuple[Operation, ...]:
    if before == after:
        return ()
    if not after:
        return (Delete(path, node_version),)
    data = registry.encode_configs(after)
    if node_version == NO_NODE_VERSION:
        return (Create(path, data),)
    return (Set(path, data, node_version),)
