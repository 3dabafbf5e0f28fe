"""UnregisterBroker: remove a broker from the cluster for good."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, field


class UnregisterBrokerRequest(Request, key=ApiKey.UNREGISTER_BROKER, versions=(0, 0), flexible=0):
    broker_id: Int32 = field("0+")


class UnregisterBrokerResponse(Response, answers=UnregisterBrokerRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
