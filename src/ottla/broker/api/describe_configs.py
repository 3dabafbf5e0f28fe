"""DescribeConfigs (key 32): settings of topics and brokers, where each comes from and what it means.

Version 1 adds sources and synonyms (KIP-226), 3 types and documentation (KIP-569), 4 is flexible.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.broker.config import TOPIC_DEFAULTS, BrokerConfig
from ottla.broker.config_keys import BROKER_CONFIGS
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.topic_names import topic_name_problem
from ottla.log.config import TOPIC_CONFIGS, ConfigKey, ConfigType, LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

TOPIC, BROKER = 2, 4
FROM_TOPIC, FROM_STATIC_BROKER, FROM_DEFAULT = 1, 4, 5
TYPE_NUMBERS = {
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
}


@serves(DescribeConfigsRequest)
def handle(broker: "Broker", context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    for resource in request.resources:
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            result.configs = [
                entry
                for entry in _describe(broker, resource)
                if resource.configuration_keys is None or entry.name in resource.configuration_keys
            ]
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = str(error)
        for entry in result.configs:
            if not request.include_synonyms:
                entry.synonyms = []
            if not request.include_documentation:
                entry.documentation = None
        response.results.append(result)
    return response


def _describe(broker: "Broker", resource: DescribeConfigsResource) -> Iterable[DescribeConfigsResourceResult]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        problem = topic_name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = broker.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return describe_topic(broker.config, topic.configs)
    if resource.resource_type == BROKER:
        if name == "":
            return ()
        if not name.isdecimal() or int(name) != broker.config.node_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"this broker is {broker.config.node_id}; ask broker {name!r} itself"
            )
        return describe_broker(broker.config)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"resource type {resource.resource_type} has no settings here; 2 (topic) and 4 (broker) have",
    )


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """All settings of a topic that sets `overrides` itself."""
    effective = LogConfig.from_properties(overrides, config.properties)
    entries = []
    for key in TOPIC_CONFIGS.values():
        if key.internal:
            continue
        synonyms = _synonyms(key, config.properties)
        if key.name in overrides:
            synonyms.insert(0, DescribeConfigsSynonym(name=key.name, value=overrides[key.name], source=FROM_TOPIC))
        value = key.format(effective.value_of(key.name))
        source = synonyms[0].source if synonyms else FROM_DEFAULT
        entries.append(_entry(key, value, source, synonyms, read_only=False))
    return entries


def describe_broker(config: BrokerConfig) -> list[DescribeConfigsResourceResult]:
    """All settings of this broker, the broker-wide defaults of topic keys among them."""
    entries = []
    for name, key in BROKER_CONFIGS.items():
        entries.append(_static_entry(name, key, config.properties))
    for name, key in TOPIC_DEFAULTS.items():
        entries.append(_static_entry(name, key, config.properties))
    return sorted(entries, key=lambda entry: entry.name)


def _static_entry(name: str, key: ConfigKey, properties: Mapping[str, str]) -> DescribeConfigsResourceResult:
    default = _default_text(name, key)
    synonyms = [DescribeConfigsSynonym(name=name, value=default, source=FROM_DEFAULT)] if default is not None else []
    if name in properties:
        synonyms.insert(0, DescribeConfigsSynonym(name=name, value=properties[name], source=FROM_STATIC_BROKER))
    entry = _entry(
        key, properties.get(name, default), synonyms[0].source if synonyms else FROM_DEFAULT, synonyms, read_only=True
    )
    entry.name = name
    return entry


def _default_text(name: str, key: ConfigKey) -> str | None:
    """The default of a broker-wide name: the less precise units of one topic key have it only once."""
    if key.default is None:
        return None
    for synonym in key.synonyms:
        if synonym.name == name and synonym.multiplier != 1:
            assert isinstance(key.default, int)
            return str(key.default // synonym.multiplier)
    is_one_of_several = len(key.synonyms) > 1 and name != key.synonyms[-1].name
    return None if is_one_of_several and name in TOPIC_DEFAULTS else key.format(key.default)


def _synonyms(key: ConfigKey, properties: Mapping[str, str]) -> list[DescribeConfigsSynonym]:
    """The broker-wide names behind a topic key, those that are set first, and its default last."""
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=properties[synonym.name], source=FROM_STATIC_BROKER)
        for synonym in key.synonyms
        if synonym.name in properties
    ]
    if key.synonyms and key.default is not None:
        last = key.synonyms[-1].name
        synonyms.append(DescribeConfigsSynonym(name=last, value=_default_text(last, key), source=FROM_DEFAULT))
    return synonyms


def _entry(
    key: ConfigKey, value: str | None, source: int, synonyms: list[DescribeConfigsSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=key.name,
        value=value,
        read_only=read_only,
        config_source=source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=TYPE_NUMBERS[key.type],
        documentation=key.documentation,
    )
