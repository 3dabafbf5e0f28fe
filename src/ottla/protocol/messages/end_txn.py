"""EndTxn: commit or abort a transaction.

From version 5 every transaction ends with a new producer epoch, which the answer carries.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, field


class EndTxnRequest(Request, key=ApiKey.END_TXN, versions=(0, 5), flexible=3):
    transactional_id: str = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    committed: bool = field("0+")


class EndTxnResponse(Response, answers=EndTxnRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)
