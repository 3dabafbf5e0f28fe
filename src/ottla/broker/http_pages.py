"""What a broker shows over HTTP (`ottla.http.listeners`).

| page     | 200 when                                                                  |
|----------|---------------------------------------------------------------------------|
| /healthz | the process runs and its loop turns: answering is the proof               |
| /readyz  | clients are served; 503 says why not                                      |
| /metrics | the logs are loaded; Prometheus' text format                              |

The port is open from the start to the very end, so that a broker which is still loading, or leaving, can say so.
"""

import logging
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from ottla.broker.dispatch import Handler
from ottla.broker.http import HttpAnswer, HttpServer, address_of, text_answer
from ottla.broker.metrics import BrokerMetrics
from ottla.broker.metrics_process import LoopLag
from ottla.broker.metrics_requests import RequestMetrics
from ottla.broker.metrics_text import CONTENT_TYPE
from ottla.broker.server import Server
from ottla.cluster.image import Endpoint
from ottla.log.manager import LogManager
from ottla.runtime import Executor

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)


class Watching:
    """All that exists only because somebody watches the broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._requests = RequestMetrics(time.perf_counter)
        self._metrics: BrokerMetrics | None = None
        self._logs: LogManager | None = None
        self._lag: LoopLag | None = None
        self._http = HttpServer(
            {"/metrics": self._show_metrics, "/healthz": self._show_health, "/readyz": self._show_ready}
        )

    def watched(self, handlers: Mapping[int, Handler]) -> dict[int, Handler]:
        """The handlers to use in place of the given ones."""
        return self._requests.watched(handlers)

    async def start(self, loop: "asyncio.AbstractEventLoop") -> tuple[Endpoint, ...]:
        """Answer from now on; gives back where."""
        self._lag = LoopLag(loop, time.perf_counter)
        self._lag.start()
        bound = await self._http.open(self._broker.config.http_listeners)
        for endpoint in bound:
            address = address_of(endpoint)
            logger.info("metrics and health are on %s", address, extra={"address": address})
        return tuple(bound)

    def attach(self, server: Server, logs: LogManager, executor: Executor) -> None:
        """The broker's parts are there: from now on they are shown."""
        assert self._lag is not None
        self._logs = logs
        self._metrics = BrokerMetrics(self._broker, server, logs, executor, self._requests, self._lag)

    async def close(self) -> None:
        if self._lag is not None:
            self._lag.stop()
        await self._http.close()

    def unready(self) -> str | None:
        """Why clients should not come here now; None when they should."""
        broker = self._broker
        if broker.busy_with:
            return broker.busy_with
        if self._logs is None or all(directory.failure is not None for directory in self._logs.directories):
            return "every log directory has failed"
        registration = broker.image.brokers.get(broker.config.node_id)
        if registration is None:
            return "not registered in the cluster"
        if not registration.is_active:
            return "the controller has not admitted this broker"
        if broker.replicas.applied_version < 0:
            return "no image of the cluster was applied yet"
        return None

    # Pages

    async def _show_health(self) -> HttpAnswer:
        return text_answer(HTTPStatus.OK, "ok")

    async def _show_ready(self) -> HttpAnswer:
        reason = self.unready()
        if reason is None:
            return text_answer(HTTPStatus.OK, "ready")
        return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {reason}")

    async def _show_metrics(self) -> HttpAnswer:
        if self._metrics is None:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, f"no metrics yet: {self._broker.busy_with}")
        return HttpAnswer(HTTPStatus.OK, await self._metrics.render(), CONTENT_TYPE)
