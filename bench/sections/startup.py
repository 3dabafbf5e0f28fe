"""From the start of the process to the first acknowledged produce, and the memory of a broker without work.

The topic is in the data directory already, from an earlier start that ended cleanly. Memory is read while the broker is
idle, two seconds after it became ready.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from tests.peers.process import ServerProcess

from bench.batches import one_record
from bench.peers import connect, new_broker, port_of
from bench.plan import Bench, Step, round_text
from bench.wire import Connection, RefusedError, create_topic, produce_answer, produce_request

TOPIC = "start"
_RETRY_SECONDS = 0.001
_SETTLE_SECONDS = 2.0


def steps(bench: Bench) -> list[Step]:
    brokers: dict[str, ServerProcess] = {}
    planned = [
        Step(f"{name}: prepare a data directory", f"start of {name}", partial(prepare, bench, name, brokers))
        for name in bench.peers.names
    ]
    for number, counted in bench.rounds():
        if not counted:
            continue
        for name in bench.peers.names:
            title = f"{name}: start, {round_text(number, counted, bench.settings.rounds)}"
            planned.append(Step(title, f"start of {name}", partial(measure, bench, name, brokers)))
    return planned


def prepare(bench: Bench, name: str, brokers: dict[str, ServerProcess]) -> None:
    broker = new_broker(name, bench.peers.directory / f"{name}-start")
    with broker, connect(broker) as connection:
        create_topic(connection, TOPIC)
    brokers[name] = broker


def measure(bench: Bench, name: str, brokers: dict[str, ServerProcess]) -> None:
    broker = brokers[name]
    try:
        seconds = seconds_to_acknowledge(broker, produce_request(TOPIC, 0, one_record().data, 0))
        time.sleep(_SETTLE_SECONDS)
        memory_mb = broker.resident_bytes() / 1e6
    finally:
        if broker.running:
            broker.stop()
    bench.results.add("startup.seconds", name, seconds)
    bench.results.add("startup.idle", name, memory_mb)


def seconds_to_acknowledge(broker: ServerProcess, request: bytes) -> float:
    """Start the broker; the seconds until it has acknowledged the record of a Produce request."""
    port = port_of(broker)
    failures: list[BaseException] = []

    def start() -> None:
        try:
            broker.start()
        except BaseException as failure:
            failures.append(failure)

    starter = threading.Thread(target=start)
    started = time.perf_counter()
    starter.start()
    try:
        while not _acknowledged(port, request):
            if failures or time.perf_counter() - started > broker.start_timeout_seconds:
                raise RefusedError(f"{broker.name} acknowledged nothing: {failures}")
            time.sleep(_RETRY_SECONDS)
        return time.perf_counter() - started
    finally:
        starter.join()


def _acknowledged(port: int, request: bytes) -> bool:
    """Whether a broker is there and takes the record; a broker that is still starting refuses in one way or another."""
    try:
        with Connection(port, timeout_seconds=5.0) as connection:
            answer = connection.exchange(request)
    except (OSError, RefusedError):
        return False
    return produce_answer(answer).error_code == 0
