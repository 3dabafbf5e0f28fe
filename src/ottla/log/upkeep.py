"""What is done to all logs from time to time, a bounded number of them in one turn of the loop."""

import asyncio
from collections.abc import Sequence

from ottla.log.log import Log
from ottla.protocol.errors import KafkaError

_LOGS_AT_ONCE = 500
_PRODUCERS_AT_ONCE = 1000


async def flush_overdue(logs: Sequence[Log], now: float) -> None:
    """Flush those whose oldest unflushed record has waited for `flush.ms`; `now` is of the monotonic clock."""
    for log in [log for log in logs if log.flushes_by_time]:
        if (
            log.recovery_point < log.log_end_offset
            and (now - log.last_flush) * 1000 >= log.config.flush_ms
            and log.directory.failure is None
        ):
            try:
                await log.flush()
            except KafkaError:
                continue  # The directory is marked as failed by now, or full.


async def expire_producers(logs: Sequence[Log], now_ms: int, expiration_ms: int) -> None:
    """Forget silent producers."""
    for number, log in enumerate(logs, 1):
        if not number % _LOGS_AT_ONCE:
            await asyncio.sleep(0)
        state = log.producer_state
        producer_ids = list(state.producers)
        for first in range(0, len(producer_ids), _PRODUCERS_AT_ONCE):
            state.remove_expired(now_ms, expiration_ms, producer_ids[first : first + _PRODUCERS_AT_ONCE])
            await asyncio.sleep(0)
