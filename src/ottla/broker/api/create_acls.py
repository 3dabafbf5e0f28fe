"""CreateAcls (key 30): there is no authorizer, so no access rule can be added. Each answer says so, as Kafka's.

Versions 1 to 3 differ in form only.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.security_disabled import NO_AUTHORIZER, refuse_unknown
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(CreateAclsRequest)
def handle(broker: "Broker", context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    for rule in request.creations:
        refuse_unknown(rule.resource_type, rule.resource_pattern_type, rule.operation, rule.permission_type)
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused] * len(request.creations))
