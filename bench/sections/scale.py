"""Many partitions and many connections: what a broker carries, how fast it is then, and how long it takes to start.

For each number of partitions both brokers get a new data directory. The partitions are filled with the same bytes and
read through one fetch session, then written to in turn, in small batches over four connections; the memory is what the
broker has after that. In the end the one with the most partitions is stopped and started.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.peers.process import ServerProcess

from bench.batches import one_record
from bench.job import Figures, run_job
from bench.peers import connect, new_broker, port_of
from bench.plan import Bench, Step, round_text
from bench.sections.startup import seconds_to_acknowledge
from bench.settings import KIB
from bench.wire import create_topic, end_offsets, produce_request

PARTITIONS_PER_TOPIC = 1000
CONNECTIONS = 4
CONNECTED_PARTITIONS = 100
STARTED_PARTITIONS = 10_000
BATCH_BYTES, FILL_BATCH_BYTES = 1 * KIB, 16 * KIB

FILL_CHUNK = 4

_SLOW_SECONDS = 180.0

Measured = tuple[str, float, Figures]


@dataclass(slots=True)
class Place:
    """One broker with one number of partitions."""

    broker: ServerProcess
    topics: dict[str, int]
    topic_ids: dict[str, int] = field(default_factory=dict)
    filled_bytes: int = 0


Places = dict[tuple[str, int], Place]


def steps(bench: Bench) -> list[Step]:
    places: Places = {}
    planned: list[Step] = []
    for partitions in bench.settings.scale_partitions:
        planned += _steps_at(bench, partitions, places)
    return planned


def _steps_at(bench: Bench, partitions: int, places: Places) -> list[Step]:
    names, rounds = bench.peers.names, bench.settings.rounds
    planned: list[Step] = []

    def once(what: str, work: Any, cleans_up: bool = False) -> None:
        for name in names:
            title, group = f"{name}: {partitions} partitions, {what}", f"{partitions} partitions on {name}"
            planned.append(Step(title, group, partial(work, bench, name, partitions, places), cleans_up))

    def in_rounds(what: str, work: Any, warm: bool = True) -> None:
        for number, counted in bench.rounds():
            if counted or warm:
                once(f"{what}, {round_text(number, counted, rounds)}", partial(_counted, work, counted))

    once("create", create)
    once("fill", fill)
    in_rounds("fetch", fetch)
    in_rounds("produce", produce)
    once("memory", memory)
    if partitions == CONNECTED_PARTITIONS:
        in_rounds(f"{bench.settings.scale_connections} connections", many_connections)
        once("memory after connections", memory_of_connections)
    if partitions == STARTED_PARTITIONS:
        once("stop", stop)
        in_rounds("start", start, warm=False)
    once("remove", remove, cleans_up=True)
    return planned


def _counted(work: Any, counted: bool, bench: Bench, name: str, partitions: int, places: Places) -> None:
    key, value, figures = work(bench, name, partitions, places)
    if counted:
        bench.results.keep(key, name, figures)
        bench.results.add(key, name, value)


def create(bench: Bench, name: str, partitions: int, places: Places) -> None:
    broker = new_broker(name, bench.peers.directory / f"{name}-scale-{partitions}")
    broker.start_timeout_seconds = broker.stop_timeout_seconds = _SLOW_SECONDS
    whole, rest = divmod(partitions, PARTITIONS_PER_TOPIC)
    sizes = [PARTITIONS_PER_TOPIC] * whole + ([rest] if rest else [])
    topics = {f"scale-{number}": size for number, size in enumerate(sizes)}
    place = places[name, partitions] = Place(broker, topics)
    broker.start()
    with connect(broker) as connection:
        for topic, size in topics.items():
            place.topic_ids[create_topic(connection, topic, size).hex()] = size


def _drive(place: Place, specification: dict[str, Any]) -> Figures:
    shape = {"port": port_of(place.broker), "topics": place.topics, "limit_bytes": 1 << 60, "verify": False}
    return run_job("produce", {**shape, **specification})


def fill(bench: Bench, name: str, partitions: int, places: Places) -> None:
    """At least one batch for every partition; the ends of all logs are compared with what was acknowledged."""
    place = places[name, partitions]
    specification = {
        "batch_bytes": FILL_BATCH_BYTES,
        "connections": 1,
        "chunk_requests": min(partitions, FILL_CHUNK),
        "window_chunks": 2,
        "warm_seconds": 0,
        "seconds": _SLOW_SECONDS,
        "limit_bytes": bench.settings.scale_fill_bytes,
        "verify": True,
    }
    place.filled_bytes = _drive(place, specification)["batches"] * FILL_BATCH_BYTES


def fetch(bench: Bench, name: str, partitions: int, places: Places) -> Measured:
    place = places[name, partitions]
    figures = run_job(
        "drain",
        {
            "port": port_of(place.broker),
            "topic_ids": place.topic_ids,
            "total_bytes": place.filled_bytes,
            "seconds": bench.settings.scale_seconds,
        },
    )
    return f"scale.fetch.{partitions}", figures["bytes_per_second"] / 1e9, figures


def produce(bench: Bench, name: str, partitions: int, places: Places) -> Measured:
    specification = {
        "batch_bytes": BATCH_BYTES,
        "connections": CONNECTIONS,
        "chunk_requests": 25,
        "window_chunks": 4,
        "warm_seconds": bench.settings.warm_seconds,
        "seconds": bench.settings.scale_seconds,
    }
    figures = _drive(places[name, partitions], specification)
    return f"scale.produce.{partitions}", figures["requests_per_second"], figures


def many_connections(bench: Bench, name: str, partitions: int, places: Places) -> Measured:
    """One request in flight on each."""
    specification = {
        "batch_bytes": BATCH_BYTES,
        "connections": bench.settings.scale_connections,
        "chunk_requests": 1,
        "window_chunks": 1,
        "warm_seconds": bench.settings.warm_seconds,
        "seconds": bench.settings.scale_seconds,
    }
    place = places[name, partitions]
    figures = _drive(place, specification)
    figures["resident_mb"] = place.broker.resident_bytes() / 1e6
    return "scale.connections", figures["requests_per_second"], figures


def memory_of_connections(bench: Bench, name: str, partitions: int, places: Places) -> None:
    bench.results.add("scale.connections.memory", name, places[name, partitions].broker.resident_bytes() / 1e6)


def memory(bench: Bench, name: str, partitions: int, places: Places) -> None:
    bench.results.add(f"scale.memory.{partitions}", name, places[name, partitions].broker.resident_bytes() / 1e6)


def stop(bench: Bench, name: str, partitions: int, places: Places) -> None:
    places[name, partitions].broker.stop()


def start(bench: Bench, name: str, partitions: int, places: Places) -> Measured:
    """After a clean stop, the time from the start of the process until the last partition takes a record.

    The other broker is stopped meanwhile: with so many partitions it is never quite idle.
    """
    place = places[name, partitions]
    topic, size = list(place.topics.items())[-1]
    seconds = seconds_to_acknowledge(place.broker, produce_request(topic, size - 1, one_record().data, 0))
    with connect(place.broker) as connection:
        for name_, count in place.topics.items():
            end_offsets(connection, name_, range(count), wait_seconds=_SLOW_SECONDS)
    stopping = time.perf_counter()
    place.broker.stop()
    stop_seconds = time.perf_counter() - stopping
    return f"scale.start.{partitions}", seconds, {"seconds": seconds, "stop_seconds": stop_seconds}


def remove(bench: Bench, name: str, partitions: int, places: Places) -> None:
    place = places.pop((name, partitions), None)
    if place is not None:
        place.broker.kill()
        shutil.rmtree(place.broker.directory, ignore_errors=True)
