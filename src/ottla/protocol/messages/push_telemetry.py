"""PushTelemetry: metrics of a client, as OpenTelemetry encodes them."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Uuid, field


class PushTelemetryRequest(Request, key=ApiKey.PUSH_TELEMETRY, versions=(0, 0), flexible=0):
    client_instance_id: Uuid = field("0+")
    subscription_id: Int32 = field("0+")
    terminating: bool = field("0+")
    compression_type: Int8 = field("0+")
    metrics: bytes = field("0+")


class PushTelemetryResponse(Response, answers=PushTelemetryRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
