"""Connections from one address (KIP-612): who opens too many too fast is let wait, and then turned away.

A connection that is refused does not count, so a client that keeps trying gets in as fast as its quota allows.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Mapping

from ottla.broker.quotas.clients import FORGOTTEN_AFTER_MS, MOST_CLIENTS, ClientUse
from ottla.broker.quotas.rates import Windows
from ottla.runtime import Clock

NO_LIMIT = 2**31 - 1


def canonical_address(text: str) -> str | None:
    """An address in the one spelling that compares; None for what is no address. IPv4 inside IPv6 is IPv4."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


class AddressQuota:
    """The limits of addresses and what each of them used; as with clients, bounded and without timers."""

    def __init__(self, windows: Windows, clock: Clock) -> None:
        self._windows = windows
        self._clock = clock
        self._limits: Mapping[str, int] = {}
        self._default = NO_LIMIT
        self._uses: OrderedDict[str, ClientUse] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether anybody is limited."""
        return bool(self._limits) or self._default != NO_LIMIT

    def __len__(self) -> int:
        return len(self._uses)

    def replace(self, limits: Mapping[str, int], default: int | None) -> None:
        """What was used stays; it is held against the new limits."""
        self._limits = limits
        self._default = NO_LIMIT if default is None else default
        for address, use in self._uses.items():
            use.limit = self._limit(address)

    def _limit(self, address: str) -> int:
        return self._limits.get(address, self._default)

    def connected(self, host: str) -> int:
        """Count a connection; if it is one too many, say how many milliseconds it is to be kept waiting."""
        address = canonical_address(host) or host
        limit = self._limit(address)
        if limit == NO_LIMIT:
            return 0
        now_ms = int(self._clock.monotonic() * 1000)
        use = self._uses.get(address)
        if use is None:
            self._forget(now_ms)
            use = self._uses[address] = ClientUse(self._windows, limit, now_ms, has_bucket=False)
        else:
            self._uses.move_to_end(address)
            use.last_used_ms = now_ms
        use.rate.record(1.0, now_ms)
        wait_ms = min(use.rate.wait_ms(use.limit, now_ms), self._windows.window_ms)
        if wait_ms > 0:
            use.rate.record(-1.0, now_ms)
        return wait_ms

    def _forget(self, now_ms: int) -> None:
        while self._uses:
            address, oldest = next(iter(self._uses.items()))
            if len(self._uses) < MOST_CLIENTS and now_ms - oldest.last_used_ms <= FORGOTTEN_AFTER_MS:
                return
            del self._uses[address]
