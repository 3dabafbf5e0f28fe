"""The cost of a fetch must not depend on the size of the log: small fetches on a small log and on a large one.

Kafka is there for reference on the small log; the large one is Ottla's alone. Two places are read: the last batches
of the log, and anywhere in it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from bench.job import Figures, run_job
from bench.peers import connect, port_of, remove_topic
from bench.plan import Bench, Step, round_text
from bench.rows import LARGE_LOG, OTTLA, SMALL_LOG
from bench.sections.produce import fill
from bench.settings import KIB
from bench.wire import create_topic

BATCH_BYTES = 16 * KIB
SMALL, LARGE = "depth-small", "depth-large"
POSITIONS = {"head": 4, "random": 512}

Logs = dict[tuple[str, str], dict[str, Any]]


def steps(bench: Bench) -> list[Step]:
    logs: Logs = {}
    sizes = {SMALL: bench.settings.depth_small_bytes, LARGE: bench.settings.depth_large_bytes}
    cases = [(name, SMALL) for name in bench.peers.names]
    if OTTLA in bench.peers.names:
        cases.append((OTTLA, LARGE))
    planned = [
        Step(f"{name}: fill {topic}", f"depth on {name}", partial(prepare, bench, name, topic, sizes[topic], logs))
        for name, topic in cases
    ]
    for where in POSITIONS:
        for number, counted in bench.rounds():
            for name, topic in cases:
                title = f"{name}: {topic}, {where}, {round_text(number, counted, bench.settings.rounds)}"
                work = partial(measure, bench, name, topic, where, logs, counted)
                planned.append(Step(title, f"depth on {name}", work))
    planned += [
        Step(f"{name}: remove {topic}", f"depth on {name}", partial(clean, bench, name, topic)) for name, topic in cases
    ]
    return planned


def prepare(bench: Bench, name: str, topic: str, size_bytes: int, logs: Logs) -> None:
    """Fill the log and let the disk catch up, so that no writing goes on under the measurement."""
    broker = bench.peers.get(name)
    with connect(broker) as connection:
        topic_id = create_topic(connection, topic)
    filled = fill(broker, topic, BATCH_BYTES, size_bytes)
    os.sync()
    logs[name, topic] = {
        "topic_id": topic_id.hex(),
        "records_per_batch": filled["records_per_batch"],
        "end_offset": filled["first_end_offset"],
    }


def measure(bench: Bench, name: str, topic: str, where: str, logs: Logs, counted: bool) -> None:
    log = logs[name, topic]
    figures: Figures = run_job(
        "fetch",
        {
            "port": port_of(bench.peers.get(name)),
            "topic_id": log["topic_id"],
            "end_offset": log["end_offset"],
            "offsets_per_request": log["records_per_batch"],
            "positions": POSITIONS[where],
            "where": where,
            "request_bytes": BATCH_BYTES,
            "warm_seconds": bench.settings.warm_seconds,
            "seconds": bench.settings.depth_seconds,
            "verify": True,
        },
    )
    if not counted:
        return
    rate = figures["requests_per_second"]
    bench.results.keep(f"depth.{where}", f"{name}, {topic}", figures)
    if topic == SMALL:
        bench.results.add(f"depth.{where}", name, rate)
    if name == OTTLA:
        bench.results.add(f"depth.growth.{where}", SMALL_LOG if topic == SMALL else LARGE_LOG, rate)


def clean(bench: Bench, name: str, topic: str) -> None:
    remove_topic(bench.peers.get(name), topic)
