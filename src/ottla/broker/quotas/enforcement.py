"""Quotas put into effect: the limits of the cluster's image reach the dispatcher and the server.

Names of hosts, which may stand in place of addresses, are looked up here, off the loop and for `PATIENCE_SECONDS` at
most; one that is not found has no limit of its own until the quotas change again.
"""

import asyncio
import logging
import socket
from collections.abc import Iterable

from ottla.broker.dispatch import Dispatcher
from ottla.broker.quotas.addresses import canonical_address
from ottla.broker.quotas.broker_quotas import BrokerQuotas
from ottla.broker.quotas.metering import Metering
from ottla.broker.server import Server
from ottla.cluster.quotas import ClientQuotas

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0


class Enforcement:
    def __init__(self, quotas: BrokerQuotas, dispatcher: Dispatcher, server: Server) -> None:
        self._quotas = quotas
        self._dispatcher = dispatcher
        self._server = server

    async def apply(self, quotas: ClientQuotas) -> None:
        """Hold clients to these. Without any, requests are not measured."""
        if not self._quotas.update(quotas):
            return
        if not self._quotas.is_metering:
            self._dispatcher.metering = None
        elif self._dispatcher.metering is None:
            self._dispatcher.metering = Metering(self._quotas)
        hosts = self._quotas.hosts()
        found = await find_addresses(hosts)
        for host in hosts:
            if host not in found:
                logger.warning("there is a quota for the host %s, and its address cannot be found", host)
        self._quotas.update_addresses(found)
        self._server.address_quota = self._quotas.connections or None


async def find_addresses(hosts: Iterable[str]) -> dict[str, str]:
    """The addresses of those hosts that have one; an address is its own."""
    found: dict[str, str] = {}
    wanted: list[str] = []
    for host in dict.fromkeys(hosts):
        address = canonical_address(host)
        if address is None:
            wanted.append(host)
        else:
            found[host] = address
    questions = {host: asyncio.ensure_future(_find_address(host)) for host in wanted}
    if questions:
        await asyncio.wait(questions.values(), timeout=PATIENCE_SECONDS)
    for host, question in questions.items():
        address = question.result() if question.done() else None
        if address is not None:
            found[host] = address
        question.cancel()
    return found


async def _find_address(host: str) -> str | None:
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError):
        return None
    return canonical_address(str(answers[0][4][0])) if answers else None
