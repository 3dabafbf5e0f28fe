"""InitProducerId: give a producer its id and epoch; for a transactional one, fence its predecessors.

Version 3 lets a producer that lost its epoch continue with a new one; 4 and 5 added the errors PRODUCER_FENCED and
TRANSACTION_ABORTABLE. Version 6, two-phase commit, is not released in Kafka 4.3 and not declared here.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, field


class InitProducerIdRequest(Request, key=ApiKey.INIT_PRODUCER_ID, versions=(0, 5), flexible=2):
    transactional_id: str | None = field("0+", nullable="0+")
    transaction_timeout_ms: Int32 = field("0+")
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)


class InitProducerIdResponse(Response, answers=InitProducerIdRequest):
    throttle_time_ms: Int32 = field("0+", ignorable=True)
    error_code: Int16 = field("0+")
    producer_id: Int64 = field("0+", default=-1)
    producer_epoch: Int16 = field("0+")
