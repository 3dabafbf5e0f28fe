"""A real broker inside the test process, on an event loop and a thread of its own.

    with TestBroker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

What must stay true:
- A broker has its port and its directory from its creation until `close`: it keeps them while it is stopped, and no
  other process can take the port meanwhile. Any number of brokers run in one process, and in processes side by side.
- Once `stop`, `kill` or `close` returned, none of its threads is left and none of its files is open.
- Everything here may be called from any thread but the broker's own.
"""

import asyncio
import concurrent.futures
import platform
import shutil
import socket
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from ottla.broker.broker import Broker
from ottla.broker.config import BrokerConfig
from ottla.broker.loops import run_on_best_loop
from ottla.runtime import Clock
from ottla.testing.faults import Faults
from ottla.testing.faulty_disk import FaultyDisk
from ottla.testing.observer import Headers, Observer, StoredRecord, Text, new_record
from ottla.testing.runtime import ManualClock, MovableClock

PATIENCE_SECONDS = 30.0
LOOPBACK = "127.0.0.1"
PORTS_CAN_BE_HELD = platform.system() == "Linux"

# Staying awake for the next request would take the interpreter from the test's own threads.
DEFAULTS = {"ottla.busy.poll.us": "0"}


@dataclass(frozen=True, slots=True)
class _Life:
    """A broker from its start to its end, which is clean (True) or not."""

    broker: Broker
    loop: asyncio.AbstractEventLoop
    end: "asyncio.Future[bool]"


class TestBroker:
    """`properties` are those of a broker, by Kafka's names. Without a `directory` it has one of its own, for as long
    as it lives. The clock is the machine's, and `clock.advance(...)` moves it; or hand in a `ManualClock`.
    """

    __test__: ClassVar[bool] = False  # Not a class of tests, whatever pytest makes of its name.

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        directory: Path | str | None = None,
        clock: MovableClock | ManualClock | None = None,
    ) -> None:
        self.clock = clock or MovableClock()
        self._disk = FaultyDisk()
        self.faults = Faults(self._disk)
        self._own_directory = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-test-") if directory is None else directory)
        self._properties = {
            "log.dirs": str(self.directory),
            **DEFAULTS,
            **{name: str(value) for name, value in (properties or {}).items()},
        }
        self._reservation: socket.socket | None = None
        if "listeners" not in self._properties:
            self._reservation, port = _reserve_port()
            self._properties["listeners"] = f"PLAINTEXT://{LOOPBACK}:{port}"
        self._endpoint: tuple[str, int] | None = None
        self._life: _Life | None = None
        self._thread: threading.Thread | None = None

    # Where it is

    @property
    def broker(self) -> Broker:
        """The broker itself, while it runs; its parts belong to its own thread."""
        return self._running().broker

    @property
    def is_running(self) -> bool:
        return self._life is not None

    @property
    def host(self) -> str:
        return self._address()[0]

    @property
    def port(self) -> int:
        return self._address()[1]

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to, the same after a restart."""
        host, port = self._address()
        return f"{host}:{port}"

    def _address(self) -> tuple[str, int]:
        if self._endpoint is None:
            raise RuntimeError("the broker was not started yet: call start(), or use it in a with statement")
        return self._endpoint

    # Starting and stopping

    def start(self) -> Self:
        """Start it, for the first time or again, with the data and the port it had. Raises what kept it from it."""
        if self._thread is not None:
            raise RuntimeError("the broker runs already")
        ready: concurrent.futures.Future[_Life] = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=lambda: run_on_best_loop(self._run(ready)), name="ottla-test-broker", daemon=True
        )
        self._thread.start()
        try:
            self._life = ready.result(PATIENCE_SECONDS)
        except BaseException:
            self._thread.join(PATIENCE_SECONDS)
            self._thread = None
            raise
        endpoint = self._life.broker.endpoints[0]
        self._endpoint = (endpoint.host, endpoint.port)
        # A listener that was handed in with port 0 stays where it is now.
        listeners = self._properties["listeners"]
        if listeners.endswith(":0") and "," not in listeners and "advertised.listeners" not in self._properties:
            self._properties["listeners"] = listeners.removesuffix("0") + str(endpoint.port)
        return self

    def stop(self) -> None:
        """Stop it in good order. Nothing happens to one that is stopped."""
        self._end(clean=True)

    def kill(self) -> None:
        """Let it die as under `kill -9`: connections break, nothing is flushed, the next start has to recover."""
        self._end(clean=False)

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop it for good: the port is given back, and the directory is removed unless it was handed in."""
        try:
            self.stop()
        finally:
            if self._reservation is not None:
                self._reservation.close()
            if self._own_directory:
                shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end(self, *, clean: bool) -> None:
        life, thread = self._life, self._thread
        if life is None or thread is None:
            return
        life.loop.call_soon_threadsafe(life.end.set_result, clean)
        thread.join(PATIENCE_SECONDS)
        if thread.is_alive():
            raise TimeoutError(f"the broker did not end within {PATIENCE_SECONDS} s")
        self._life = self._thread = None
        self._disk.close_files()

    def _running(self) -> _Life:
        if self._life is None:
            raise RuntimeError("the broker is not running: call start()")
        return self._life

    async def _run(self, ready: "concurrent.futures.Future[_Life]") -> None:
        try:
            broker = self._new_broker(BrokerConfig.from_properties(self._properties), self.clock)
            broker.dispatcher.interceptor = self.faults.intercept
            await broker.start()
        except BaseException as error:
            self._disk.close_files()
            ready.set_exception(error)
            return
        loop = asyncio.get_running_loop()
        life = _Life(broker, loop, loop.create_future())
        ready.set_result(life)
        clean = await life.end
        if clean:
            self.faults.release()
            await broker.shutdown()
        else:
            await broker.crash()

    def _new_broker(self, config: BrokerConfig, clock: Clock) -> Broker:
        return Broker(config, disk=self._disk, clock=clock, is_durable=False)

    # Topics and records

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic with its settings, by Kafka's names; `KafkaError` says why it cannot be."""
        with self._observer() as observer:
            observer.create_topic(name, partitions, configs or {})

    def topics(self) -> dict[str, int]:
        """The topics there are, and how many partitions each of them has."""
        with self._observer() as observer:
            return observer.topics()

    def produce(
        self,
        topic: str,
        value: Text,
        key: Text = None,
        *,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int = 0,
    ) -> StoredRecord:
        """Write one record, and give it back as it is stored. The timestamp is the broker's clock's unless given."""
        record = new_record(value, key, headers, self.clock.now_ms() if timestamp is None else timestamp)
        with self._observer() as observer:
            return observer.produce(topic, partition, record)

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """All that was written to a topic, or to one partition of it, in the order of partitions and offsets.

        Those of transactions that are open or were aborted are among them; control records are not.
        """
        with self._observer() as observer:
            return observer.records(topic, partition, 0, 0.0)

    def wait_for_records(
        self, topic: str, at_least: int, partition: int | None = None, *, timeout_seconds: float = 10.0
    ) -> list[StoredRecord]:
        """What `records` gives, once there are enough; the topic need not exist yet. `TimeoutError` if they never come.

        It blocks: in a coroutine, call it with `asyncio.to_thread`.
        """
        with self._observer() as observer:
            return observer.records(topic, partition, at_least, timeout_seconds)

    def _observer(self) -> Observer:
        self._running()
        return Observer(*self._address())


def _reserve_port() -> tuple[socket.socket | None, int]:
    """A port, and the socket that keeps it while no broker listens on it.

    On Linux, sockets that allow it may share a port of which one listens. Elsewhere the port is free while its broker
    is stopped, and the system is unlikely to give it to somebody else so soon.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOOPBACK, 0))
    port: int = holder.getsockname()[1]
    if PORTS_CAN_BE_HELD:
        return holder, port
    holder.close()
    return None, port
