"""What a producer is told when its transaction cannot go on."""

import logging

from ottla.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


def error_code(error: BaseException | None, *, knows_fencing: bool) -> ErrorCode:
    """NONE without an error. Versions before PRODUCER_FENCED was known say INVALID_PRODUCER_EPOCH instead."""
    if error is None:
        return ErrorCode.NONE
    if not isinstance(error, KafkaError):
        logger.error("a transaction failed", exc_info=error)
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if error.code is ErrorCode.PRODUCER_FENCED and not knows_fencing:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
