"""DescribeAcls: the access rules that match a filter.

Version 1 brought prefixed and literal patterns, 3 the resource type for users.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class DescribeAclsRequest(Request, key=ApiKey.DESCRIBE_ACLS, versions=(1, 3), flexible=2):
    resource_type_filter: Int8 = field("0+")
    resource_name_filter: str | None = field("0+", nullable="0+")
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: str | None = field("0+", nullable="0+")
    host_filter: str | None = field("0+", nullable="0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


class AclDescription(Struct):
    principal: str = field("0+")
    host: str = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


class DescribeAclsResource(Struct):
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")
    pattern_type: Int8 = field("1+", default=3)
    acls: list[AclDescription] = field("0+")


class DescribeAclsResponse(Response, answers=DescribeAclsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    resources: list[DescribeAclsResource] = field("0+")
