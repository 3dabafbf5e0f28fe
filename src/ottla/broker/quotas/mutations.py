"""How much of the cluster one request changes (KIP-599), counted in partitions created or deleted.

Strict, in the versions of the APIs that know the error: who owes something may change nothing until it is paid off, and
who owes nothing may overdraw. In older versions everything is done, and the client waits afterwards.
"""

from typing import Protocol

from ottla.broker.quotas.clients import ClientUse
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import Clock


class MutationCharge(Protocol):
    """Handed to the controller, which calls it for each topic that it is about to change."""

    def __call__(self, topic: str | bytes, partitions: int) -> None: ...

    def throttle_ms(self) -> int:
        """How long the client has to wait from now on."""
        ...


class _Unlimited:
    def __call__(self, topic: str | bytes, partitions: int) -> None:
        pass

    def throttle_ms(self) -> int:
        return 0


UNLIMITED: MutationCharge = _Unlimited()


class CountedCharge:
    """One request's changes. A decision that has to be made again is charged once."""

    def __init__(self, use: ClientUse, clock: Clock, *, is_strict: bool) -> None:
        assert use.bucket is not None, "mutations are counted in buckets"
        self._use = use
        self._bucket = use.bucket
        self._clock = clock
        self._is_strict = is_strict
        self._charged: set[str | bytes] = set()
        self._wait_until_ms = 0

    def __call__(self, topic: str | bytes, partitions: int) -> None:
        if topic in self._charged:
            return
        now_ms = self._now_ms()
        if self._is_strict and self._owes(now_ms):
            message = "Too many partitions were created or deleted; try again when the time to wait is over."
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)
        self._charged.add(topic)
        self._use.rate.record(partitions, now_ms)
        self._bucket.take(partitions, self._use.limit, now_ms)
        if not self._is_strict:
            self._owes(now_ms)

    def _owes(self, now_ms: int) -> bool:
        if self._bucket.tokens(self._use.limit, now_ms) < 0:
            self._wait_until_ms = now_ms + self._bucket.wait_ms(self._use.limit, now_ms)
            return True
        return False

    def throttle_ms(self) -> int:
        return max(0, self._wait_until_ms - self._now_ms()) if self._wait_until_ms else 0

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
