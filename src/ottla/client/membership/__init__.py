"""Groups as a member sees them: both protocols, and the assignors.

| module                       | holds                                                                              |
|------------------------------|------------------------------------------------------------------------------------|
| `interface`                  | what a consumer sees of its group, and the group of its consumer                   |
| `classic`, `classic_driver`  | JoinGroup, SyncGroup, Heartbeat, LeaveGroup: the state machine, and what drives it |
| `epochs`, `epochs_driver`    | ConsumerGroupHeartbeat (KIP-848), likewise                                         |
| `driver`                     | what both drivers share: tasks, user code that stays away, errors                  |
| `answers`, `embedded`        | what error codes mean; what classic members say to each other                      |
| `wanted`, `patience`         | the subscription; `max.poll.interval.ms`                                           |
| `assignors`                  | who reads what in a classic group                                                  |
"""

from ottla.client.config import ConsumerConfig
from ottla.client.membership.assignors import assignors_of
from ottla.client.membership.classic_driver import ClassicMembership
from ottla.client.membership.epochs_driver import EpochMembership
from ottla.client.membership.interface import Membership, Rebalancing
from ottla.client.membership.settings import settings_of
from ottla.client.network import Network
from ottla.runtime import Clock, IdSource

__all__ = ["assignors_of", "membership_of"]


def membership_of(
    network: Network, config: ConsumerConfig, rebalancing: Rebalancing, clock: Clock, ids: IdSource
) -> Membership:
    """The membership that a consumer's settings ask for; ConfigError where they contradict each other."""
    settings = settings_of(config)
    if config.group_protocol == "consumer":
        return EpochMembership(network, settings, rebalancing, clock, ids)
    return ClassicMembership(network, settings, rebalancing, clock)
