"""GetTelemetrySubscriptions: which of its metrics a client should push, and how often."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Uuid, field


class GetTelemetrySubscriptionsRequest(Request, key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=(0, 0), flexible=0):
    client_instance_id: Uuid = field("0+")


class GetTelemetrySubscriptionsResponse(Response, answers=GetTelemetrySubscriptionsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    client_instance_id: Uuid = field("0+")
    subscription_id: Int32 = field("0+")
    accepted_compression_types: list[Int8] = field("0+")
    push_interval_ms: Int32 = field("0+")
    telemetry_max_bytes: Int32 = field("0+")
    delta_temporality: bool = field("0+")
    requested_metrics: list[str] = field("0+")
