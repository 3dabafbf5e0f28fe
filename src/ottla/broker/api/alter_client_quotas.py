"""AlterClientQuotas (key 49): set or remove quotas of users, client ids and addresses, or only check it (KIP-546).

Each entity is answered for itself and changes whole or not at all. The answer leaves when this broker goes by the new
quotas. Version 1 is flexible.
"""

from typing import TYPE_CHECKING

from ottla.broker.config_alteration import MAX_CHANGES
from ottla.broker.dispatch import RequestContext, serves
from ottla.broker.quotas.enforcement import find_addresses
from ottla.cluster.quotas import IP, QuotaEntity
from ottla.cluster.requests import AlterQuotasRequest, AlterQuotasResult, QuotaChange
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryDataResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


@serves(AlterClientQuotasRequest)
async def handle(
    broker: "Broker", context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    entities = [
        QuotaEntity.of({part.entity_type: part.entity_name for part in entry.entity}) for entry in request.entries
    ]
    if sum(len(entry.ops) for entry in request.entries) > MAX_CHANGES:
        message = f"One request may change {MAX_CHANGES} quotas at most."
        refused = [AlterQuotasResult(entity, ErrorCode.POLICY_VIOLATION, message) for entity in dict.fromkeys(entities)]
        return AlterClientQuotasResponse(entries=[_answer(result) for result in refused])
    hosts = [name for entity in entities if (name := entity.names.get(IP))]
    found = await find_addresses(hosts)
    changes = [
        AlterQuotasRequest(
            entity, _changes(entry), is_unknown_host=(entity.names.get(IP) or None) not in {None, *found}
        )
        for entity, entry in zip(entities, request.entries, strict=True)
    ]
    results = await broker.controller.alter_client_quotas(changes, request.validate_only)
    if not request.validate_only:
        await broker.image_applied()
    return AlterClientQuotasResponse(entries=[_answer(result) for result in results])


def _changes(entry: EntryData) -> tuple[QuotaChange, ...]:
    return tuple(QuotaChange(change.key, None if change.remove else change.value) for change in entry.ops)


def _answer(result: AlterQuotasResult) -> EntryDataResponse:
    return EntryDataResponse(
        error_code=result.error,
        error_message=result.message,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in result.entity.parts],
    )
