"""IncrementalAlterConfigs (key 44): change single settings of a topic, broker, group or metrics subscription (KIP-339).

SET and DELETE work on every setting, APPEND and SUBTRACT on lists; or all of it is only checked. Version 1 is flexible.
"""

from typing import TYPE_CHECKING

from ottla.broker.config_alteration import Alteration, alter
from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.requests import ConfigChange, ConfigOperation
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

OPERATIONS = {int(operation): operation for operation in ConfigOperation}


@serves(IncrementalAlterConfigsRequest)
async def handle(
    broker: "Broker", context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    results = await alter(
        broker, [_alteration(resource) for resource in request.resources], validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(
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
    unknown = sorted({config.config_operation for config in resource.configs} - OPERATIONS.keys())
    problem = None
    if unknown:
        named = ", ".join(f"{number} {operation.name}" for number, operation in OPERATIONS.items())
        problem = KafkaError(ErrorCode.INVALID_REQUEST, f"There is no operation {unknown[0]}; there are {named}.")
    changes = tuple(
        ConfigChange(config.name, config.value, OPERATIONS.get(config.config_operation, ConfigOperation.SET))
        for config in resource.configs
    )
    return Alteration(resource.resource_type, resource.resource_name, changes, problem=problem)
