"""DescribeConfigs (key 32): settings of topics, brokers, groups and client metrics, and where each comes from.

Version 1 adds sources and synonyms (KIP-226), 3 types and documentation (KIP-569), 4 is flexible.
"""

from typing import TYPE_CHECKING

from ottla.broker.config_alteration import BROKER, CLIENT_METRICS, GROUP, TOPIC, check_is_this_broker
from ottla.broker.config_description import (
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.topic_names import check_topic_name
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DescribeConfigsRequest)
def handle(broker: "Broker", context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    for resource in request.resources:
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        wanted = set(resource.configuration_keys) if resource.configuration_keys else None
        try:
            described = _describe(broker, resource)
            result.configs = [entry for entry in described if wanted is None or entry.name in wanted]
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


def _describe(broker: "Broker", resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        check_topic_name(name)
        topic = broker.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return describe_topic(broker.settings, topic.configs, resource.configuration_keys or ())
    if resource.resource_type == BROKER:
        if name == "":
            return describe_all_brokers(broker.settings)
        check_is_this_broker(broker, name)
        return describe_broker(broker.settings)
    if resource.resource_type == GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "there are no settings for all groups: a group must be named")
        return describe_group(broker.settings, broker.image.group_configs.by_name.get(name, {}))
    if resource.resource_type == CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a subscription to client metrics must be named")
        return describe_client_metrics(broker.image.client_metrics.by_name.get(name, {}))
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no settings here")
