"""ListConfigResources: names of the resources that have configs.

Version 0 lists client metrics subscriptions only; from version 1 the client says which types it wants.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class ListConfigResourcesRequest(Request, key=ApiKey.LIST_CONFIG_RESOURCES, versions=(0, 1), flexible=0):
    resource_types: list[Int8] = field("1+")


class ConfigResource(Struct):
    resource_name: str = field("0+")
    resource_type: Int8 = field("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Response, answers=ListConfigResourcesRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    config_resources: list[ConfigResource] = field("0+")
