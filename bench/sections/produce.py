"""Produce: small requests, 64 KB and 1 MB batches, sent by `bench.jobs.produce`; one partition per connection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.peers.process import ServerProcess

from bench.job import Figures, run_job
from bench.peers import fresh_topic, port_of
from bench.plan import Bench, Step, round_text
from bench.settings import KIB, MIB


@dataclass(frozen=True, slots=True)
class Shape:
    """`batch_bytes` of 0 is one record. In flight per connection: `chunk_requests` times `window_chunks` requests."""

    key: str
    batch_bytes: int
    connections: int
    chunk_requests: int
    window_chunks: int

    def specification(self) -> dict[str, Any]:
        return {
            "batch_bytes": self.batch_bytes,
            "connections": self.connections,
            "chunk_requests": self.chunk_requests,
            "window_chunks": self.window_chunks,
        }


SHAPES = (
    Shape("produce.small.1", 0, 1, 25, 4),
    Shape("produce.small.4", 0, 4, 25, 4),
    Shape("produce.64k.1", 64 * KIB, 1, 4, 4),
    Shape("produce.64k.4", 64 * KIB, 4, 4, 4),
    Shape("produce.1m.1", MIB, 1, 1, 4),
)


def steps(bench: Bench) -> list[Step]:
    planned = []
    for shape in SHAPES:
        for number, counted in bench.rounds():
            for name in bench.peers.names:
                title = f"{name}: {shape.key}, {round_text(number, counted, bench.settings.rounds)}"
                planned.append(
                    Step(title, f"{shape.key} on {name}", partial(measure, bench, shape, name, number, counted))
                )
    return planned + [
        Step(f"{name}: memory after load", f"memory of {name}", partial(measure_memory, bench, name))
        for name in bench.peers.names
    ]


def measure(bench: Bench, shape: Shape, name: str, number: int, counted: bool) -> None:
    broker = bench.peers.get(name)
    topic = f"{shape.key.replace('.', '-')}-{number + bench.settings.warm_rounds}"
    with fresh_topic(broker, topic, shape.connections):
        figures = run_job(
            "produce",
            {
                **shape.specification(),
                "port": port_of(broker),
                "topic": topic,
                "warm_seconds": bench.settings.warm_seconds,
                "seconds": bench.settings.produce_seconds,
                "limit_bytes": bench.settings.produce_limit_bytes,
                "touch_bytes": 4 * bench.settings.produce_limit_bytes if shape.batch_bytes else 0,
                "verify": True,
            },
        )
    if counted:
        bench.results.keep(shape.key, name, figures)
        bench.results.add(shape.key, name, figures["requests_per_second"])


def measure_memory(bench: Bench, name: str) -> None:
    bench.results.add("produce.loaded", name, bench.peers.get(name).resident_bytes() / 1e6)


def fill(broker: ServerProcess, topic: str, batch_bytes: int, total_bytes: int) -> Figures:
    """Fill partition 0 of a topic with at least `total_bytes` of batches of one size."""
    return run_job(
        "produce",
        {
            "batch_bytes": batch_bytes,
            "connections": 1,
            "chunk_requests": 4,
            "window_chunks": 4,
            "port": port_of(broker),
            "topic": topic,
            "warm_seconds": 0,
            "seconds": 280.0,
            "limit_bytes": total_bytes,
            "verify": True,
        },
    )
