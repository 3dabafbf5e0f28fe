"""AddOffsetsToTxn: make the offsets of a consumer group part of a transaction."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, field


class AddOffsetsToTxnRequest(Request, key=ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4), flexible=3):
    transactional_id: str = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    group_id: str = field("0+")


class AddOffsetsToTxnResponse(Response, answers=AddOffsetsToTxnRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
