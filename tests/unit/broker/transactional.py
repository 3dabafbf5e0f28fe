"""A coordinator that knows which partitions are in whose transaction, for tests of those who ask one."""

import asyncio

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime.promise import Promise

Member = tuple[str, int, int, str, int]


class StandIn:
    """Answers as Kafka's coordinator does for one that was asked by a broker. `errors` come before any answer."""

    def __init__(self, *, later: bool = False) -> None:
        self.members: set[Member] = set()
        self.errors: list[ErrorCode] = []
        self.asked: list[tuple[Member, bool]] = []
        self.later = later
        self.unanswered: list[Promise[None]] = []

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, topic: str, partition: int, adds: bool
    ) -> Promise[None] | None:
        member = (transactional_id, producer_id, producer_epoch, topic, partition)
        self.asked.append((member, adds))
        error = self.errors.pop(0) if self.errors else None
        if error is None and not adds and member not in self.members:
            error = ErrorCode.TRANSACTION_ABORTABLE
        if adds and error is None:
            self.members.add(member)
        if not self.later:
            if error is not None:
                raise KafkaError(error)
            return None
        promise: Promise[None] = Promise()
        if error is None:
            self.unanswered.append(promise)
            asyncio.get_running_loop().call_soon(promise.resolve, None)
        else:
            asyncio.get_running_loop().call_soon(promise.reject, KafkaError(error))
        return promise
