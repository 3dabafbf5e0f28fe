"""All quotas of this broker, as the cluster's image says.

Nothing is measured in a respect in which nobody is limited, and while there are no quotas for clients at all, requests
are not even looked at (`is_metering`).
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.quotas.addresses import AddressQuota, canonical_address
from ottla.broker.quotas.clients import ClientQuota
from ottla.broker.quotas.mutations import UNLIMITED, CountedCharge, MutationCharge
from ottla.broker.quotas.rates import Windows
from ottla.cluster.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuotas,
)
from ottla.runtime import Clock

if TYPE_CHECKING:
    from ottla.broker.dispatch import RequestContext

ANONYMOUS = "ANONYMOUS"
"""Who everybody is while nobody has to say who they are."""


class BrokerQuotas:
    def __init__(self, clock: Clock, windows: Windows, controller_windows: Windows) -> None:
        self._clock = clock
        self.produce = ClientQuota(windows)
        self.fetch = ClientQuota(windows)
        self.request = ClientQuota(windows, longest_wait_ms=windows.window_ms)
        self.mutation = ClientQuota(controller_windows, has_buckets=True)
        self.connections = AddressQuota(windows, clock)
        self.by_key = {
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
            CONTROLLER_MUTATION_RATE: self.mutation,
        }
        self._taken: ClientQuotas | None = None

    @property
    def is_metering(self) -> bool:
        """Whether any client is limited in anything but connections."""
        return any(quota.limits for quota in self.by_key.values())

    def update(self, quotas: ClientQuotas) -> bool:
        """Take over the limits of clients; False when they are the ones that were there."""
        if quotas is self._taken:
            return False
        self._taken = quotas
        for key, quota in self.by_key.items():
            pairs: list[tuple[str | None, str | None, float]] = []
            users: list[tuple[str | None, float]] = []
            clients: list[tuple[str | None, float]] = []
            for entity, limits in quotas.limits.items():
                if key not in limits:
                    continue
                names = entity.names
                limit = math.inf if math.isnan(limits[key]) else limits[key]
                if USER in names and CLIENT_ID in names:
                    pairs.append((names[USER], names[CLIENT_ID], limit))
                elif USER in names:
                    users.append((names[USER], limit))
                elif CLIENT_ID in names:
                    clients.append((names[CLIENT_ID], limit))
            quota.limits.replace(pairs, users, clients)
            quota.limits_changed()
        return True

    def hosts(self) -> list[str]:
        """The names among the entities that have to be looked up."""
        limits = {} if self._taken is None else self._taken.limits
        names = (entity.names.get(IP) for entity in limits)
        return [name for name in names if name is not None and canonical_address(name) is None]

    def update_addresses(self, found: Mapping[str, str]) -> None:
        """Take over the limits of addresses; `found` has the addresses of `hosts`."""
        limits: dict[str, int] = {}
        default: int | None = None
        for entity, values in ({} if self._taken is None else self._taken.limits).items():
            names = entity.names
            limit = values.get(CONNECTION_CREATION_RATE, math.nan)
            if IP not in names or math.isnan(limit):
                continue
            name = names[IP]
            if name is None:
                default = int(limit)
                continue
            address = canonical_address(name) or found.get(name)
            if address is not None:
                limits[address] = int(limit)
        self.connections.replace(limits, default)

    def charge(self, context: "RequestContext", strict_since_version: int = 0) -> MutationCharge:
        """What the controller has to be handed with a request that creates or deletes partitions."""
        if not self.mutation.limits:
            return UNLIMITED
        now_ms = self.now_ms()
        use = self.mutation.use(ANONYMOUS, context.client_id or "", now_ms)
        return CountedCharge(use, self._clock, is_strict=context.api_version >= strict_since_version)

    def now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def seconds(self) -> float:
        return self._clock.monotonic()
