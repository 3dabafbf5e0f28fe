"""ListConfigResources (key 74): what has settings: topics, brokers, groups and subscriptions to client metrics.

Version 0 was ListClientMetricsResources and lists subscriptions only; from version 1 on the client says which types it
wants, none for all (KIP-1142).
"""

from typing import TYPE_CHECKING

from ottla.broker.config_alteration import BROKER, CLIENT_METRICS, GROUP, TOPIC
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

BROKER_LOGGER = 8
KNOWN_TYPES = frozenset((TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP))


@serves(ListConfigResourcesRequest)
def handle(
    broker: "Broker", context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    wanted = KNOWN_TYPES if not request.resource_types else frozenset(request.resource_types)
    if context.api_version == 0:
        wanted = frozenset((CLIENT_METRICS,))
    if not wanted <= KNOWN_TYPES:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found: list[ConfigResource] = []
    if BROKER in wanted:
        found += [ConfigResource(resource_name=str(node_id), resource_type=BROKER) for node_id in broker.image.brokers]
    if TOPIC in wanted:
        found += [ConfigResource(resource_name=name, resource_type=TOPIC) for name in broker.image.topics]
    if GROUP in wanted:
        named = broker.image.group_configs.by_name
        found += [ConfigResource(resource_name=name, resource_type=GROUP) for name in named]
    if CLIENT_METRICS in wanted:
        named = broker.image.client_metrics.by_name
        found += [ConfigResource(resource_name=name, resource_type=CLIENT_METRICS) for name in named]
    return ListConfigResourcesResponse(config_resources=found)
