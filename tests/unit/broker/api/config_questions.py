"""Questions about settings: changing and describing them."""

from collections.abc import Callable

from tests.waiting import tries
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
FROM_TOPIC, FROM_BROKER, FROM_ALL_BROKERS, FROM_STATIC_BROKER, FROM_DEFAULT = 1, 2, 3, 4, 5
THIS_BROKER, ALL_BROKERS = "1", ""

Change = tuple[str, int, str | None]


def resource(kind: int, name: str, *changes: Change) -> incremental_alter_configs.AlterConfigsResource:
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def incremental(
    client: WireClient,
    *resources: incremental_alter_configs.AlterConfigsResource,
    validate_only: bool = False,
    version: int = 1,
) -> list[ErrorCode]:
    """Change settings; the code for each resource, in order."""
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=list(resources), validate_only=validate_only
    )
    responses = client.ask(request, incremental_alter_configs.IncrementalAlterConfigsResponse, version).responses
    assert [(response.resource_type, response.resource_name) for response in responses] == [
        (item.resource_type, item.resource_name) for item in resources
    ]
    assert all((response.error_message is None) == (response.error_code == 0) for response in responses)
    return [ErrorCode(response.error_code) for response in responses]


def change(client: WireClient, kind: int, name: str, *changes: Change, validate_only: bool = False) -> ErrorCode:
    """Change settings of one resource."""
    (code,) = incremental(client, resource(kind, name, *changes), validate_only=validate_only)
    return code


def replace_all(
    client: WireClient,
    kind: int,
    name: str,
    configs: list[tuple[str, str | None]],
    *,
    validate_only: bool = False,
    version: int = 2,
) -> ErrorCode:
    """Change all settings of one resource, in the old way."""
    item = alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
    )
    request = alter_configs.AlterConfigsRequest(resources=[item], validate_only=validate_only)
    (response,) = client.ask(request, alter_configs.AlterConfigsResponse, version).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return ErrorCode(response.error_code)


def describe(
    client: WireClient,
    kind: int,
    name: str,
    *,
    keys: list[str] | None = None,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms, include_documentation=documentation)
    (result,) = client.ask(request, DescribeConfigsResponse, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert result.error_code == ErrorCode.NONE, (ErrorCode(result.error_code), result.error_message)
    configs = {config.name: config for config in result.configs}
    assert len(configs) == len(result.configs), "a setting is described twice"
    return configs


def own_settings(client: WireClient, topic: str) -> dict[str, str | None]:
    """What a topic sets itself."""
    configs = by_name(describe(client, TOPIC, topic))
    return {name: config.value for name, config in configs.items() if config.config_source == FROM_TOPIC}


def described(client: WireClient, kind: int, name: str, key: str) -> tuple[str | None, int] | None:
    """The value of one setting and where it comes from."""
    config = by_name(describe(client, kind, name, keys=[key])).get(key)
    return None if config is None else (config.value, config.config_source)


def layers(client: WireClient, kind: int, name: str, key: str) -> list[tuple[str, str | None, int]]:
    config = by_name(describe(client, kind, name, keys=[key], synonyms=True))[key]
    return [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]


def eventually(ask: Callable[[], object], expected: object) -> None:
    """Apache Kafka answers before its broker goes by new settings; Ottla answers after, so one question is enough."""
    for _ in tries():
        found = ask()
        if found == expected:
            break
    assert found == expected
