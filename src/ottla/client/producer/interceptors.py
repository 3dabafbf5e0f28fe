"""Objects that see every record before it is sent, and what became of it.

An interceptor may have `on_send(record) -> record`, which may hand back another one, and
`on_acknowledgement(metadata, error)`. What they raise is told in the log and changes nothing.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from ottla.client.producer.waiting import call
from ottla.client.types import RecordMetadata

logger = logging.getLogger(__name__)

OnDelivery = Callable[[RecordMetadata | None, Exception | None], object]


class OutgoingRecord(NamedTuple):
    """A record as a user gave it, before serializers."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Any = None
    timestamp: int | datetime | None = None
    partition: int | None = None


class Interceptors:
    def __init__(self, given: Iterable[object]) -> None:
        self._given = tuple(given)

    def __bool__(self) -> bool:
        return bool(self._given)

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        for one in self._given:
            see = getattr(one, "on_send", None)
            if see is None:
                continue
            try:
                record = see(record) or record
            except Exception:
                logger.exception("an interceptor failed in on_send")
        return record

    def acknowledging(self, on_delivery: OnDelivery | None) -> OnDelivery:
        """A callback that tells the interceptors first, then the user's own."""

        return _Acknowledging(self._given, on_delivery)


class _Acknowledging:
    __slots__ = ("_interceptors", "on_delivery")

    def __init__(self, interceptors: tuple[object, ...], on_delivery: OnDelivery | None) -> None:
        self._interceptors = interceptors
        self.on_delivery = on_delivery

    def __call__(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        for one in self._interceptors:
            see = getattr(one, "on_acknowledgement", None)
            if see is not None:
                call(see, metadata, error, told="an interceptor failed in on_acknowledgement")
        if self.on_delivery is not None:
            self.on_delivery(metadata, error)


def is_watched(callback: OnDelivery | None) -> bool:
    """Whether the user gave a callback: interceptors alone do not handle what fails."""
    if isinstance(callback, _Acknowledging):
        callback = callback.on_delivery
    return callback is not None
