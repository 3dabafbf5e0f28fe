"""IncrementalAlterConfigs: set, delete, append to or subtract from single configs of a resource."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class AlterableConfig(Struct):
    name: str = field("0+")
    config_operation: Int8 = field("0+")
    value: str | None = field("0+", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")
    configs: list[AlterableConfig] = field("0+")


class IncrementalAlterConfigsRequest(Request, key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), flexible=1):
    resources: list[AlterConfigsResource] = field("0+")
    validate_only: bool = field("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")


class IncrementalAlterConfigsResponse(Response, answers=IncrementalAlterConfigsRequest):
    throttle_time_ms: Int32 = field("0+")
    responses: list[AlterConfigsResourceResponse] = field("0+")
