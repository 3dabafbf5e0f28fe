"""The measurements of all clients in one respect: bytes produced, bytes fetched, or time.

A client is measured from its first request on, and forgotten an hour after its last one. There are `MOST_CLIENTS` at a
time: one that sends every request under another client id makes the longest idle one be forgotten, and no memory grow.
No timer is needed for either: whoever is idle longest is first in line.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator

from ottla.broker.quotas.limits import ClientLimits, ClientTags
from ottla.broker.quotas.rates import INT32_MAX, SampledSum, TokenBucket, Windows

FORGOTTEN_AFTER_MS = 3_600_000
MOST_CLIENTS = 10_000
NO_LIMIT = float(2**63 - 1)
THROTTLE_WINDOWS = Windows(samples=2, window_ms=30_000)


class ClientUse:
    """What one client, or all that share a limit, used."""

    __slots__ = ("bucket", "last_used_ms", "limit", "rate", "throttle_times")

    def __init__(self, windows: Windows, limit: float, now_ms: int, *, has_bucket: bool) -> None:
        self.rate = SampledSum(windows)
        self.bucket = TokenBucket(windows) if has_bucket else None
        self.throttle_times = SampledSum(THROTTLE_WINDOWS)
        self.limit = limit
        self.last_used_ms = now_ms


class ClientQuota:
    """One kind of quota, and what all clients used of it. No wait is longer than `longest_wait_ms`."""

    def __init__(self, windows: Windows, *, longest_wait_ms: int = INT32_MAX, has_buckets: bool = False) -> None:
        self.windows = windows
        self.limits = ClientLimits()
        self._longest_wait_ms = longest_wait_ms
        self._has_buckets = has_buckets
        self._uses: OrderedDict[ClientTags, ClientUse] = OrderedDict()

    def __len__(self) -> int:
        return len(self._uses)

    def limits_changed(self) -> None:
        """What was used stays; it is held against the new limits."""
        for tags, use in self._uses.items():
            use.limit = self._limit(tags)
        if not self.limits:
            self._uses.clear()

    def _limit(self, tags: ClientTags) -> float:
        limit = self.limits.of(tags)
        return NO_LIMIT if limit is None else limit

    def use(self, user: str, client_id: str, now_ms: int) -> ClientUse:
        """Where what this client uses is counted."""
        tags = self.limits.tags(user, client_id)
        uses = self._uses
        found = uses.get(tags)
        if found is None:
            self._forget(now_ms)
            found = uses[tags] = ClientUse(self.windows, self._limit(tags), now_ms, has_bucket=self._has_buckets)
        else:
            uses.move_to_end(tags)
            found.last_used_ms = now_ms
        return found

    def _forget(self, now_ms: int) -> None:
        uses = self._uses
        while uses:
            tags, oldest = next(iter(uses.items()))
            if len(uses) < MOST_CLIENTS and now_ms - oldest.last_used_ms <= FORGOTTEN_AFTER_MS:
                return
            del uses[tags]

    def record(self, user: str, client_id: str, amount: float, now_ms: int) -> int:
        """Count it, and say how many milliseconds the client has to wait."""
        if not self.limits:
            return 0
        use = self.use(user, client_id, now_ms)
        use.rate.record(amount, now_ms)
        return min(use.rate.wait_ms(use.limit, now_ms), self._longest_wait_ms)

    def unrecord(self, user: str, client_id: str, amount: float, now_ms: int) -> None:
        """What was counted did not happen after all."""
        if self.limits:
            self.use(user, client_id, now_ms).rate.record(-amount, now_ms)

    def most_at_once(self, user: str, client_id: str, now_ms: int) -> float:
        """More than this at once has to wait, whatever was used before."""
        if not self.limits:
            return math.inf
        whole_windows_seconds = (self.windows.samples - 1) * self.windows.window_ms / 1000
        return self.use(user, client_id, now_ms).limit * whole_windows_seconds

    def throttled(self, user: str, client_id: str, wait_ms: int, now_ms: int) -> None:
        """Remember that the client was made to wait, for the metrics."""
        if self.limits:
            self.use(user, client_id, now_ms).throttle_times.record(wait_ms, now_ms)

    def latest(self, count: int) -> Iterator[tuple[ClientTags, ClientUse]]:
        """Those who were seen last, the latest first."""
        latest = list(self._uses.items())[: -count - 1 : -1]
        yield from latest
