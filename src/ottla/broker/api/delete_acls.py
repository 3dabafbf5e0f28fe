"""DeleteAcls (key 31): there is no authorizer, so no access rule can be removed. Each answer says so, as Kafka's.

Versions 1 to 3 differ in form only.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.security_disabled import NO_AUTHORIZER, refuse_unknown
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(DeleteAclsRequest)
def handle(broker: "Broker", context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    for wanted in request.filters:
        refuse_unknown(
            wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type
        )
    refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
