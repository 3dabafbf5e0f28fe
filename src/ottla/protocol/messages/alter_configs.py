"""AlterConfigs: replace all configs of a resource.

Whatever is not named is reset, which is why IncrementalAlterConfigs came to replace it.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class AlterableConfig(Struct):
    name: str = field("0+")
    value: str | None = field("0+", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")
    configs: list[AlterableConfig] = field("0+")


class AlterConfigsRequest(Request, key=ApiKey.ALTER_CONFIGS, versions=(0, 2), flexible=2):
    resources: list[AlterConfigsResource] = field("0+")
    validate_only: bool = field("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")


class AlterConfigsResponse(Response, answers=AlterConfigsRequest):
    throttle_time_ms: Int32 = field("0+")
    responses: list[AlterConfigsResourceResponse] = field("0+")
