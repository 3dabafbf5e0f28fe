"""Settings of topics, brokers, groups and clients' metrics."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Call, Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results, merged
from ottla.client.errors import InvalidRequest, OttlaError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

Value = TypeVar("Value")


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from; the first of these that has one wins."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """What has settings. The name of a broker is its id; an empty one stands for the defaults of all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int) -> "ConfigResource":
        return cls(ResourceType.BROKER, str(node_id))

    @classmethod
    def all_brokers(cls) -> "ConfigResource":
        return cls(ResourceType.BROKER, "")

    @classmethod
    def group(cls, group_id: str) -> "ConfigResource":
        return cls(ResourceType.GROUP, group_id)

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or '(all)'}"

    @property
    def answering_broker(self) -> int | None:
        """Settings and loggers of one broker are known to that broker alone."""
        if self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and self.name:
            try:
                return int(self.name)
            except ValueError:
                raise InvalidRequest(f"broker {self.name!r}: a broker is named by its id, a whole number") from None
        return None


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting. The value of a sensitive one is None; `synonyms` and `documentation` are there if asked for."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType = ConfigType.UNKNOWN
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class Append:
    """Add these to a setting that is a list."""

    values: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """Take these out of a setting that is a list."""

    values: str


Change = str | int | bool | None | Append | Subtract


class ConfigsAdmin(AdminPart):
    async def describe_configs(
        self,
        resources: ConfigResource | Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of each resource by name, all of them unless `names` are given."""
        call = self._call(timeout)
        keys = None if names is None else list(names)

        async def ask(
            node_id: int | None, wanted: Sequence[ConfigResource]
        ) -> Outcomes[ConfigResource, dict[str, ConfigEntry]]:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=one.type, resource_name=one.name, configuration_keys=keys)
                    for one in wanted
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            if node_id is None:
                answer = await call.to_any(request, DescribeConfigsResponse)
            else:
                answer = await call.to(node_id, request, DescribeConfigsResponse)
            return {
                (key := _resource(result.resource_type, result.resource_name)): failure(
                    result.error_code, result.error_message, key
                )
                if result.error_code
                else {config.name: _entry(config) for config in result.configs}
                for result in answer.results
                if result.resource_type in set(ResourceType)
            }

        return await call.settle(_resources(resources), lambda wanted: _by_answering_broker(call, wanted, ask))

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Change]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, None]:
        """Change single settings; the others stay. None removes one, so that its default holds again.

            orders = ConfigResource.topic("orders")
            await admin.alter_configs({orders: {"retention.ms": 3600000, "cleanup.policy": None}})

        `Append` and `Subtract` change settings that are lists.
        """
        wanted = {resource: [_change(name, value) for name, value in new.items()] for resource, new in changes.items()}
        call = self._call(timeout)

        async def ask(node_id: int | None, resources: Sequence[ConfigResource]) -> Outcomes[ConfigResource, None]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(resource_type=one.type, resource_name=one.name, configs=wanted[one])
                    for one in resources
                ],
                validate_only=validate_only,
            )
            if node_id is None:
                answer = await call.to_controller(request, IncrementalAlterConfigsResponse)
            else:
                answer = await call.to(node_id, request, IncrementalAlterConfigsResponse)
            return {
                (key := _resource(result.resource_type, result.resource_name)): failure(
                    result.error_code, result.error_message, key
                )
                if result.error_code
                else None
                for result in answer.responses
                if result.resource_type in set(ResourceType)
            }

        return await call.settle(wanted, lambda resources: _by_answering_broker(call, resources, ask))

    async def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """The resources that have settings of their own, of all types where none are named."""
        call = self._call(timeout)
        request = ListConfigResourcesRequest(resource_types=[int(one) for one in types])

        async def ask() -> list[ConfigResource]:
            answer = await call.to_any(request, ListConfigResourcesResponse)
            if answer.error_code:
                raise failure(answer.error_code, None, "the list of resources with settings")
            return sorted(
                _resource(one.resource_type, one.resource_name)
                for one in answer.config_resources
                if one.resource_type in set(ResourceType)
            )

        return await call.ask_until_answered(ask)


def _resources(given: ConfigResource | Iterable[ConfigResource]) -> list[ConfigResource]:
    return [given] if isinstance(given, ConfigResource) else list(given)


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(kind), name)


async def _by_answering_broker(
    call: Call,
    resources: Sequence[ConfigResource],
    ask: Callable[[int | None, Sequence[ConfigResource]], Awaitable[Outcomes[ConfigResource, Value]]],
) -> Outcomes[ConfigResource, Value]:
    """Ask each broker about itself, and for the rest whoever answers for the cluster (None)."""
    of_cluster = [resource for resource in resources if resource.answering_broker is None]
    of_brokers: dict[int, list[ConfigResource]] = {}
    outcomes: dict[ConfigResource, Value | OttlaError] = {}
    for resource in resources:
        node_id = resource.answering_broker
        if node_id is not None and node_id in call.network.cluster.nodes:
            of_brokers.setdefault(node_id, []).append(resource)
        elif node_id is not None:
            outcomes[resource] = failure(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                "no broker has this id: describe the cluster to see them",
                resource,
            )
    parts = [
        outcomes,
        await call.in_pieces(of_cluster, lambda piece: ask(None, piece)),
        await call.by_broker(of_brokers, ask),
    ]
    return merged(parts)


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        _source(config.config_source),
        config.read_only,
        config.is_sensitive,
        ConfigType(config.config_type) if config.config_type in set(ConfigType) else ConfigType.UNKNOWN,
        tuple(ConfigSynonym(one.name, one.value, _source(one.source)) for one in config.synonyms),
        config.documentation,
    )


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN


def _change(name: str, value: Change) -> AlterableConfig:
    if value is None:
        return AlterableConfig(name=name, config_operation=ConfigOperation.DELETE, value=None)
    if isinstance(value, Append):
        return AlterableConfig(name=name, config_operation=ConfigOperation.APPEND, value=value.values)
    if isinstance(value, Subtract):
        return AlterableConfig(name=name, config_operation=ConfigOperation.SUBTRACT, value=value.values)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return AlterableConfig(name=name, config_operation=ConfigOperation.SET, value=text)
