"""confluent-kafka on both brokers: what a Python user has today. The client is part of what is measured here."""

from __future__ import annotations

from functools import partial

from bench.job import run_job
from bench.peers import connect, fresh_topic
from bench.plan import Bench, Step, round_text
from bench.wire import RefusedError, end_offset


def steps(bench: Bench) -> list[Step]:
    planned = []
    for number, counted in bench.rounds():
        for name in bench.peers.names:
            text = f"confluent-kafka, {round_text(number, counted, bench.settings.rounds)}"
            work = partial(measure_throughput, bench, name, number, counted)
            planned.append(Step(f"{name}: {text}, throughput", f"confluent-kafka throughput on {name}", work))
    for number, counted in bench.rounds():
        for name in bench.peers.names:
            text = f"confluent-kafka, {round_text(number, counted, bench.settings.rounds)}"
            work = partial(measure_latency, bench, name, number, counted)
            planned.append(Step(f"{name}: {text}, latency", f"confluent-kafka latency on {name}", work))
    return planned


def measure_throughput(bench: Bench, name: str, number: int, counted: bool) -> None:
    """Produce a number of records, find exactly that many in the log, then consume the first of them."""
    broker, settings = bench.peers.get(name), bench.settings
    topic = f"clients-{number + settings.warm_rounds}"
    common = {"bootstrap": broker.bootstrap, "topic": topic}
    with fresh_topic(broker, topic):
        produced = run_job("client", {**common, "what": "produce", "records": settings.client_records})
        with connect(broker) as connection:
            end = end_offset(connection, topic, 0)
        if end != settings.client_records:
            raise RefusedError(f"confluent-kafka produced {settings.client_records} records, the log ends at {end}")
        consumed = run_job("client", {**common, "what": "consume", "records": settings.client_consumed_records})
    if counted:
        for key, figures in (("clients.produce", produced), ("clients.consume", consumed)):
            bench.results.keep(key, name, figures)
            bench.results.add(key, name, figures["records_per_second"])


def measure_latency(bench: Bench, name: str, number: int, counted: bool) -> None:
    broker, settings = bench.peers.get(name), bench.settings
    topic = f"latency-{number + settings.warm_rounds}"
    with fresh_topic(broker, topic):
        figures = run_job(
            "client",
            {
                "bootstrap": broker.bootstrap,
                "topic": topic,
                "what": "latency",
                "rate": settings.latency_rate,
                "seconds": settings.latency_seconds if counted else 1.0,
            },
        )
    if counted:
        bench.results.keep("clients.p50", name, figures)
        bench.results.add("clients.p50", name, figures["p50_ms"])
        bench.results.add("clients.p99", name, figures["p99_ms"])
