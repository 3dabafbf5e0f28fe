"""DescribeAcls (key 29): there is no authorizer, so there are no access rules, and the answer says so as Kafka's does.

Versions 1 to 3 differ in form only.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.security_disabled import NO_AUTHORIZER, refuse_unknown
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DescribeAclsRequest)
def handle(broker: "Broker", context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    refuse_unknown(
        request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
    )
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
