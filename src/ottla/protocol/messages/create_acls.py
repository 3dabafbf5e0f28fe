"""CreateAcls: add access rules.

Version 1 brought prefixed and literal patterns, 3 the resource type for users.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class AclCreation(Struct):
    resource_type: Int8 = field("0+")
    resource_name: str = field("0+")
    resource_pattern_type: Int8 = field("1+", default=3)
    principal: str = field("0+")
    host: str = field("0+")
    operation: Int8 = field("0+")
    permission_type: Int8 = field("0+")


class CreateAclsRequest(Request, key=ApiKey.CREATE_ACLS, versions=(1, 3), flexible=2):
    creations: list[AclCreation] = field("0+")


class AclCreationResult(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")


class CreateAclsResponse(Response, answers=CreateAclsRequest):
    throttle_time_ms: Int32 = field("0+")
    results: list[AclCreationResult] = field("0+")
