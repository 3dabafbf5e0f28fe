"""The membership of a consumer on a real machine."""

from ottla.client.config import ConsumerConfig
from ottla.client.membership import membership_of
from ottla.client.membership.interface import Membership, Rebalancing
from ottla.client.network import Network
from ottla.runtime import Clock
from ottla.runtime.real import SystemIds


def join_group(network: Network, config: ConsumerConfig, rebalancing: Rebalancing, clock: Clock) -> Membership:
    return membership_of(network, config, rebalancing, clock, SystemIds())
