"""DescribeCluster: id, controller and brokers of the cluster.

From version 1 controllers answer too, so the client says which kind it means; version 2 can include fenced brokers.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class DescribeClusterRequest(Request, key=ApiKey.DESCRIBE_CLUSTER, versions=(0, 2), flexible=0):
    include_cluster_authorized_operations: bool = field("0+")
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: bool = field("2+")


class DescribeClusterBroker(Struct):
    broker_id: Int32 = field("0+")
    host: str = field("0+")
    port: Int32 = field("0+")
    rack: str | None = field("0+", nullable="0+", default=None)
    is_fenced: bool = field("2+")


class DescribeClusterResponse(Response, answers=DescribeClusterRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+", default=None)
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: str = field("0+")
    controller_id: Int32 = field("0+", default=-1)
    brokers: list[DescribeClusterBroker] = field("0+")
    cluster_authorized_operations: Int32 = field("0+", default=-2147483648)
