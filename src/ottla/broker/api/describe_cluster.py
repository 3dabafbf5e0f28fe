"""DescribeCluster (key 60): the brokers of the cluster and its controller.

Version 1 can ask for controllers instead of brokers (KIP-919), version 2 for fenced brokers too (KIP-1073).
"""

from typing import TYPE_CHECKING

from ottla.broker.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

BROKERS, CONTROLLERS = 1, 2


@serves(DescribeClusterRequest)
def handle(broker: "Broker", context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        code = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        )
        return DescribeClusterResponse(
            error_code=code,
            error_message=f"this listener describes brokers (1), not endpoint type {request.endpoint_type}",
            endpoint_type=BROKERS,
        )
    image = broker.image
    response = DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    for _, registration in sorted(image.brokers.items()):
        endpoint = registration.endpoint(context.listener)
        if endpoint is None or (registration.is_fenced and not request.include_fenced_brokers):
            continue
        response.brokers.append(
            DescribeClusterBroker(
                broker_id=registration.node_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=registration.rack,
                is_fenced=registration.is_fenced,
            )
        )
    return response
