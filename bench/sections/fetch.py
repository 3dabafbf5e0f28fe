"""Fetch: the same log read again and again from the page cache, in pieces of three sizes, by `bench.jobs.fetch`."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.job import run_job
from bench.peers import connect, port_of, remove_topic
from bench.plan import Bench, Step, round_text
from bench.sections.produce import fill
from bench.settings import KIB, MIB
from bench.wire import create_topic

TOPIC = "fetch"
BATCH_BYTES = 64 * KIB
POSITIONS = 32
SIZES = {"fetch.128k": 128 * KIB, "fetch.1m": MIB, "fetch.8m": 8 * MIB}

Logs = dict[str, dict[str, Any]]


def steps(bench: Bench) -> list[Step]:
    logs: Logs = {}
    names = bench.peers.names
    planned = [Step(f"{name}: fill a log", f"fetch on {name}", partial(prepare, bench, name, logs)) for name in names]
    for key, size_bytes in SIZES.items():
        for number, counted in bench.rounds():
            for name in names:
                title = f"{name}: {key}, {round_text(number, counted, bench.settings.rounds)}"
                work = partial(measure, bench, key, size_bytes, name, logs, counted)
                planned.append(Step(title, f"fetch on {name}", work))
    planned += [Step(f"{name}: remove the log", f"fetch on {name}", partial(clean, bench, name)) for name in names]
    return planned


def prepare(bench: Bench, name: str, logs: Logs) -> None:
    broker = bench.peers.get(name)
    with connect(broker) as connection:
        topic_id = create_topic(connection, TOPIC)
    filled = fill(broker, TOPIC, BATCH_BYTES, bench.settings.fetch_log_bytes)
    logs[name] = {
        "topic_id": topic_id.hex(),
        "records_per_batch": filled["records_per_batch"],
        "end_offset": filled["first_end_offset"],
    }


def measure(bench: Bench, key: str, size_bytes: int, name: str, logs: Logs, counted: bool) -> None:
    log = logs[name]
    figures = run_job(
        "fetch",
        {
            "port": port_of(bench.peers.get(name)),
            "topic_id": log["topic_id"],
            "end_offset": log["end_offset"],
            "offsets_per_request": log["records_per_batch"] * (size_bytes // BATCH_BYTES),
            "positions": POSITIONS,
            "where": "spread",
            "request_bytes": size_bytes,
            "warm_seconds": bench.settings.warm_seconds,
            "seconds": bench.settings.fetch_seconds,
            "verify": True,
        },
    )
    if counted:
        bench.results.keep(key, name, figures)
        bench.results.add(key, name, figures["bytes_per_second"] / 1e9)


def clean(bench: Bench, name: str) -> None:
    remove_topic(bench.peers.get(name), TOPIC)
