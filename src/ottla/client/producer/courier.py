"""Carries the sender's shipments to the brokers, and brings their answers back. In the loop's thread."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.client.cluster import Node
from ottla.client.errors import BrokerUnavailable, ClientClosed, OttlaError
from ottla.client.network import Network
from ottla.client.producer.sender import Sender
from ottla.client.producer.shipment import Shipment
from ottla.client.producer.transactions import Transactions
from ottla.protocol.messages.produce import ProduceResponse
from ottla.runtime import Clock
from ottla.runtime.promise import Promise

logger = logging.getLogger(__name__)

_OURS = (
    "the answer of broker {} could not be carried out: {!r}. The records may be written; this is a fault of the client"
)


class Courier:
    """`landed` is called after every answer and for every connection that was made, for a turn of the sender.

    A request leaves in the call that hands it over, or fails in it: none waits for a connection, where it would
    overtake those that were lost with the connection before it. So a broker gets the batches of a partition in their
    order, which it cannot check as long as it knows none of them.
    """

    def __init__(
        self,
        network: Network,
        sender: Sender,
        transactions: Transactions | None,
        clock: Clock,
        *,
        wants_answers: bool,
        retry_seconds: float,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        landed: Callable[[], None],
    ) -> None:
        self._network = network
        self._sender = sender
        self._transactions = transactions
        self._clock = clock
        self._wants_answers = wants_answers
        self._retry_seconds = retry_seconds
        self._spawn = spawn
        self._turn = landed
        self._connecting: set[int] = set()

    def is_ready(self, node_id: int) -> bool:
        """Whether a request would leave now; where not, a connection is made, or a quota waited for."""
        if self._network.is_open(node_id):
            return True
        if node_id not in self._connecting:
            self._connecting.add(node_id)
            self._spawn(self._reach(node_id))
        return False

    async def _reach(self, node_id: int) -> None:
        try:
            await self._network.reach(node_id)
        except OttlaError as error:
            self._sender.unreachable(node_id, error)
            await asyncio.sleep(self._retry_seconds)
        finally:
            self._connecting.discard(node_id)
        self._turn()

    def carry(self, shipment: Shipment) -> None:
        hand_over = self._network.ask_now if self._wants_answers else self._network.tell
        try:
            promise = hand_over(shipment.node_id, shipment.request, max_version=self._max_version())
        except OttlaError as error:
            self._failed(shipment, error)
            return
        if promise is None:
            self._failed(shipment, BrokerUnavailable(f"the connection to broker {shipment.node_id} broke"))
        else:
            promise.add_done_callback(lambda done: self._landed(shipment, done))

    def _max_version(self) -> int | None:
        return None if self._transactions is None else self._transactions.produce_version

    def _landed(self, shipment: Shipment, done: "Promise[ProduceResponse] | asyncio.Future[None]") -> None:
        if done.cancelled():
            self._failed(shipment, ClientClosed("the producer was closed before the broker answered"))
            return
        error = done.exception()
        if error is None:
            self._answered(shipment, done.result())
        elif isinstance(error, OttlaError):
            self._failed(shipment, error)
        else:
            self._failed(shipment, OttlaError(f"the request could not be sent: {error}"))

    def _answered(self, shipment: Shipment, response: ProduceResponse | None) -> None:
        """Whatever comes of it, nobody who waits for the records is left behind."""
        try:
            self._sender.answered(shipment, response, self._clock.monotonic())
            if response is not None and response.node_endpoints:
                self._learn_leaders(shipment, response)
        except OttlaError as error:
            logger.warning("an answer of broker %d: %s", shipment.node_id, error)
            self._sender.unanswered(shipment, error, self._clock.monotonic())
        except Exception as error:
            logger.exception("an answer of broker %d could not be carried out", shipment.node_id)
            self._sender.abandon(shipment, OttlaError(_OURS.format(shipment.node_id, error)))
        self._turn()

    def _learn_leaders(self, shipment: Shipment, response: ProduceResponse) -> None:
        nodes = [Node(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]
        for batch, answer in shipment.match(response):
            leader = answer.current_leader
            if leader.leader_id >= 0:
                self._network.learn_leader(
                    batch.queue.topic, batch.queue.number, leader.leader_id, leader.leader_epoch, nodes
                )

    def _failed(self, shipment: Shipment, error: OttlaError) -> None:
        self._sender.failed(shipment, error, self._clock.monotonic())
        self._turn()
