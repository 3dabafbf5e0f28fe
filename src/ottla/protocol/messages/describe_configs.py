"""DescribeConfigs: configs of topics, brokers and other resources, with where each value comes from.

Version 1 returns synonyms, 3 types and documentation.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class DescribeConfigsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")
    configuration_keys: list[str] | None = field("0+", nullable="0+")


class DescribeConfigsRequest(Request, key=ApiKey.DESCRIBE_CONFIGS, versions=(1, 4), flexible=4):
    resources: list[DescribeConfigsResource] = field("0+")
    include_synonyms: bool = field("1+")
    include_documentation: bool = field("3+")


class DescribeConfigsSynonym(Struct):
    name: str = field("1+")
    value: str | None = field("1+", nullable="0+")
    source: Int8 = field("1+")


class DescribeConfigsResourceResult(Struct):
    name: str = field("0+")
    value: str | None = field("0+", nullable="0+")
    read_only: bool = field("0+")
    config_source: Int8 = field("1+", default=-1, ignorable=True)
    is_sensitive: bool = field("0+")
    synonyms: list[DescribeConfigsSynonym] = field("1+", ignorable=True)
    config_type: Int8 = field("3+", ignorable=True)
    documentation: str | None = field("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")
    configs: list[DescribeConfigsResourceResult] = field("0+")


class DescribeConfigsResponse(Response, answers=DescribeConfigsRequest):
    throttle_time_ms: Int32 = field("0+")
    results: list[DescribeConfigsResult] = field("0+")
