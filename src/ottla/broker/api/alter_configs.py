"""AlterConfigs (key 33): replace all settings of a topic, broker, group or metrics subscription, or only check it.

What is not named goes back to its default, which is why IncrementalAlterConfigs came to replace it (KIP-339).
Version 1 is the same as 0 (KIP-219), 2 is flexible.
"""

from typing import TYPE_CHECKING

from ottla.broker.config_alteration import Alteration, alter
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.requests import ConfigChange
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(AlterConfigsRequest)
async def handle(broker: "Broker", context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    results = await alter(
        broker, [_alteration(resource) for resource in request.resources], validate_only=request.validate_only
    )
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=result.error,
                error_message=result.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, result in zip(request.resources, results, strict=True)
        ]
    )


def _alteration(resource: AlterConfigsResource) -> Alteration:
    changes = tuple(ConfigChange(config.name, config.value) for config in resource.configs)
    return Alteration(resource.resource_type, resource.resource_name, changes, replaces_all=True)
