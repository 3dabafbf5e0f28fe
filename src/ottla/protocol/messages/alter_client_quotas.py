"""AlterClientQuotas: set or remove quotas of users, client ids and addresses."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Float64, Int16, Int32, Struct, field


class EntityData(Struct):
    entity_type: str = field("0+")
    entity_name: str | None = field("0+", nullable="0+")


class OpData(Struct):
    key: str = field("0+")
    value: Float64 = field("0+")
    remove: bool = field("0+")


class EntryData(Struct):
    entity: list[EntityData] = field("0+")
    ops: list[OpData] = field("0+")


class AlterClientQuotasRequest(Request, key=ApiKey.ALTER_CLIENT_QUOTAS, versions=(0, 1), flexible=1):
    entries: list[EntryData] = field("0+")
    validate_only: bool = field("0+")


class EntryDataResponse(Struct):
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    entity: list[EntityData] = field("0+")


class AlterClientQuotasResponse(Response, answers=AlterClientQuotasRequest):
    throttle_time_ms: Int32 = field("0+")
    entries: list[EntryDataResponse] = field("0+")
