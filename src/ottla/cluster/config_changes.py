"""Decisions about settings of topics, brokers, groups and client metrics. Pure functions of an image and requests.

Checked is what would be in force afterwards, all of it: two settings that are fine alone may not be so together.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.cluster import paths, registry
from ottla.cluster.image import NO_NODE_VERSION, BrokerConfigs, ClusterImage, NamedConfigs
from ottla.cluster.requests import (
    AlterConfigsRequest,
    AlterConfigsResult,
    ConfigChange,
    ConfigOperation,
    Decision,
)
from ottla.cluster.topic_names import check_topic_name
from ottla.coordination.store import MAX_NODE_BYTES, Create, Delete, Operation, Set
from ottla.log.config import TOPIC_CONFIGS, ConfigType, LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError

Validator = Callable[[Mapping[str, str]], object]
BrokerValidator = Callable[[BrokerConfigs, int | None], object]


def _topic_lists() -> dict[str, str]:
    return {name: key.format(key.default) for name, key in TOPIC_CONFIGS.items() if key.type is ConfigType.LIST}


def _refuse_broker_configs(after: BrokerConfigs, node_id: int | None) -> None:
    configs = after.by_broker[node_id]
    if configs:
        message = f"These settings cannot be changed while the broker runs: {', '.join(sorted(configs))}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _refuse_group_configs(configs: Mapping[str, str]) -> None:
    if configs:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Groups have no settings: {', '.join(sorted(configs))}")


def _refuse_client_metrics(configs: Mapping[str, str]) -> None:
    if configs:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "There are no subscriptions to client metrics.")


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """Which settings are valid. The validators raise `KafkaError`; lists are settings that APPEND can add to, with
    the value they have when nothing is set.

    A topic's validator sees all that the topic would set. A broker's sees the dynamic settings of all brokers as they
    would be, and whose are changed: one broker's, or those for all (None).
    """

    validate_topic: Validator = LogConfig.from_properties
    validate_broker: BrokerValidator = _refuse_broker_configs
    validate_group: Validator = _refuse_group_configs
    validate_client_metrics: Validator = _refuse_client_metrics
    topic_lists: Mapping[str, str] = field(default_factory=_topic_lists)
    broker_lists: Mapping[str, str] = field(default_factory=dict)


def alter_topic_configs(
    image: ClusterImage, requests: Sequence[AlterConfigsRequest], rules: ConfigRules
) -> list[Decision[AlterConfigsResult]]:
    return [_alter_topic(image, request, rules) for request in requests]


def _alter_topic(image: ClusterImage, request: AlterConfigsRequest, rules: ConfigRules) -> Decision[AlterConfigsResult]:
    try:
        _check_topic_name(request.name)
        topic = image.topics.get(request.name)
        configs = altered({} if topic is None else topic.configs, request, rules.topic_lists)
        rules.validate_topic(configs)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{request.name}'.")
        operations = _write(paths.topic_config(topic.name), topic.configs, configs, topic.config_version)
        return Decision(AlterConfigsResult(request.name), operations)
    except KafkaError as error:
        return Decision(AlterConfigsResult(request.name, error.code, error.message))


def _check_topic_name(name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "There are no settings for all topics: a topic must be named.")
    check_topic_name(name)


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
        after = BrokerConfigs({**image.configs.by_broker, node_id: configs}, image.configs.versions)
        rules.validate_broker(after, node_id)
        version = image.configs.versions.get(node_id, NO_NODE_VERSION)
        operations = _write(paths.broker_config(node_id), before, configs, version)
        return Decision(AlterConfigsResult(request.name), operations)
    except KafkaError as error:
        return Decision(AlterConfigsResult(request.name, error.code, error.message))


def alter_group_configs(
    image: ClusterImage, requests: Sequence[AlterConfigsRequest], rules: ConfigRules
) -> list[Decision[AlterConfigsResult]]:
    place = _NamedPlace("group", image.group_configs, paths.group_config, rules.validate_group)
    return [_alter_named(place, request) for request in requests]


def alter_client_metrics(
    image: ClusterImage, requests: Sequence[AlterConfigsRequest], rules: ConfigRules
) -> list[Decision[AlterConfigsResult]]:
    """What sets nothing any more is gone: a subscription is its settings."""
    place = _NamedPlace("subscription", image.client_metrics, paths.client_metrics, rules.validate_client_metrics)
    return [_alter_named(place, request) for request in requests]


class _NamedPlace(NamedTuple):
    """Where settings belong to a name, whether or not there is something of that name."""

    kind: str
    configs: NamedConfigs
    path: Callable[[str], str]
    validate: Validator


def _alter_named(place: _NamedPlace, request: AlterConfigsRequest) -> Decision[AlterConfigsResult]:
    try:
        if not request.name:
            message = f"There are no settings for every {place.kind}: one must be named."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        before = place.configs.by_name.get(request.name, {})
        configs = altered(before, request, {})
        place.validate(configs)
        version = place.configs.versions.get(request.name, NO_NODE_VERSION)
        operations = _write(place.path(request.name), before, configs, version)
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
    check_changes(request.changes)
    result = {} if request.replaces_all else dict(configs)
    for change in request.changes:
        value = _new_value(change, result.get(change.name), lists)
        if value is None:
            result.pop(change.name, None)
        else:
            result[change.name] = value
    return result


def check_changes(changes: Sequence[ConfigChange]) -> None:
    """What no change may be, whatever it is a change of."""
    times_named = Counter(change.name for change in changes)
    repeated = sorted(name for name, times in times_named.items() if times > 1)
    if repeated:
        message = f"Each setting may be changed once in a request, these came more often: {', '.join(repeated)}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    missing = [
        change.name for change in changes if change.value is None and change.operation is not ConfigOperation.DELETE
    ]
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"A value is needed to change these: {', '.join(missing)}")


def _new_value(change: ConfigChange, current: str | None, lists: Mapping[str, str]) -> str | None:
    if change.operation is ConfigOperation.DELETE:
        return None
    assert change.value is not None, "changes are checked before"
    if change.operation is ConfigOperation.SET:
        return change.value
    default = lists.get(change.name)
    if default is None:
        message = f"{change.operation.name} is for lists, and {change.name} is none."
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
    if len(data) > MAX_NODE_BYTES:
        message = f"The settings take {len(data)} bytes together, {MAX_NODE_BYTES} is the limit."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if node_version == NO_NODE_VERSION:
        return (Create(path, data),)
    return (Set(path, data, node_version),)
