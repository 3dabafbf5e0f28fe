"""Client quotas: who they are for, and which there are (KIP-546).

An entity names a user, a client id, both, or an address; a name that is None stands for everybody without a quota of
their own. What an entity may be limited in depends on its kind:

| kind                   | keys                                                                                     |
|------------------------|------------------------------------------------------------------------------------------|
| user, client-id, both  | producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate     |
| ip                     | connection_creation_rate                                                                 |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Limits = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Pairs of a type and a name, in the order of types, so that two that mean the same are equal."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> "QuotaEntity":
        return cls(tuple((kind, names[kind]) for kind in sorted(names)))

    @property
    def names(self) -> dict[str, str | None]:
        return dict(self.parts)


@dataclass(frozen=True, slots=True)
class ClientQuotas:
    """The quotas of all entities, with the versions of the nodes they were read from."""

    limits: Mapping[QuotaEntity, Limits] = field(default_factory=dict)
    versions: Mapping[QuotaEntity, int] = field(default_factory=dict)
