"""DescribeClientQuotas: quotas of users, client ids and addresses."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Float64, Int8, Int16, Int32, Struct, field


class ComponentData(Struct):
    entity_type: str = field("0+")
    match_type: Int8 = field("0+")
    match: str | None = field("0+", nullable="0+")


class DescribeClientQuotasRequest(Request, key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), flexible=1):
    components: list[ComponentData] = field("0+")
    strict: bool = field("0+")


class EntityData(Struct):
    entity_type: str = field("0+")
    entity_name: str | None = field("0+", nullable="0+")


class ValueData(Struct):
    key: str = field("0+")
    value: Float64 = field("0+")


class EntryData(Struct):
    entity: list[EntityData] = field("0+")
    values: list[ValueData] = field("0+")


class DescribeClientQuotasResponse(Response, answers=DescribeClientQuotasRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    entries: list[EntryData] | None = field("0+", nullable="0+")
