"""DescribeClientQuotas (key 48): the quotas of the entities that a filter lets through (KIP-546).

A filter has a component for each type of entity that matters: an exact name, the default, or any name at all. Entities
with other types besides come too, unless the filter is strict. Version 1 is flexible.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.quotas import CLIENT_ID, IP, USER, QuotaEntity
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

EXACT, DEFAULT, ANY_NAME = 0, 1, 2


@serves(DescribeClientQuotasRequest)
def handle(
    broker: "Broker", context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        _check(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts],
                values=[ValueData(key=key, value=value) for key, value in limits.items()],
            )
            for entity, limits in broker.image.quotas.limits.items()
            if _passes(entity, request)
        ],
    )


def _check(components: Sequence[ComponentData]) -> None:
    seen: set[str] = set()
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            raise _invalid("A component of the filter has an empty type.")
        if kind in seen:
            raise _invalid(f"The filter has more than one component for {kind}.")
        if kind not in (USER, CLIENT_ID, IP):
            message = f"There are no quotas for {kind!r}, only for {USER}, {CLIENT_ID} and {IP}."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        if match_type not in (EXACT, DEFAULT, ANY_NAME):
            raise _invalid(f"{match_type} is no way to match a name; 0, 1 and 2 are.")
        if (match_type == EXACT) == (component.match is None):
            raise _invalid("A name to match is needed for an exact match, and for no other.")
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise _invalid("A filter is for addresses, or for users and client ids, and not for both.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _passes(entity: QuotaEntity, request: DescribeClientQuotasRequest) -> bool:
    names = entity.names
    if request.strict and len(names) != len(request.components):
        return False
    for component in request.components:
        kind = component.entity_type
        if kind not in names:
            return False
        if component.match_type != ANY_NAME and names[kind] != component.match:
            return False
    return True
