"""Transactions of one record each: by raw requests over several connections, and by one Java producer."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from tests.peers.java import compile_java
from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.peers.process import ServerProcess

from bench.job import run_job
from bench.peers import connect, fresh_topic, new_broker, port_of, stop_broker
from bench.plan import Bench, Step, round_text
from bench.sections.groups import PROPERTIES, Measured
from bench.wire import TRANSACTION_COORDINATOR, RefusedError, end_offset, wait_for_coordinator

CONNECTIONS = 8
_SOURCE = Path(__file__).parents[1] / "java" / "TransactionRate.java"
_TIMEOUT_SECONDS = 120

Brokers = dict[str, ServerProcess]


def steps(bench: Bench) -> list[Step]:
    brokers: Brokers = {}
    names = bench.peers.names
    group = "transactions on {}".format
    planned = [Step(f"{name}: start", group(name), partial(begin, bench, name, brokers)) for name in names]
    for what, work in (("raw", raw), ("Java", java)):
        for number, counted in bench.rounds():
            for name in names:
                title = f"{name}: transactions, {what}, {round_text(number, counted, bench.settings.rounds)}"
                step = partial(measure, work, bench, name, brokers, number, counted)
                planned.append(Step(title, group(name), step))
    planned += [Step(f"{name}: stop", group(name), partial(stop_broker, name, brokers), True) for name in names]
    return planned


def begin(bench: Bench, name: str, brokers: Brokers) -> None:
    broker = brokers[name] = new_broker(name, bench.peers.directory / f"{name}-transactions", PROPERTIES).start()
    with connect(broker) as connection:
        wait_for_coordinator(connection, TRANSACTION_COORDINATOR)


def measure(work: object, bench: Bench, name: str, brokers: Brokers, number: int, counted: bool) -> None:
    assert callable(work)
    found: Measured = work(bench, brokers[name], number + bench.settings.warm_rounds)
    for key, value, figures in found if counted else ():
        bench.results.keep(key, name, figures)
        bench.results.add(key, name, value)


def raw(bench: Bench, broker: ServerProcess, number: int) -> Measured:
    topic = f"transactions-{number}"
    with fresh_topic(broker, topic, CONNECTIONS):
        specification = {
            "what": "transactions",
            "port": port_of(broker),
            "topic": topic,
            "group": topic,
            "connections": CONNECTIONS,
            "seconds": bench.settings.transaction_seconds,
        }
        figures = run_job("commits", specification)
    return [("transactions.raw", figures["rate"], figures)]


def java(bench: Bench, broker: ServerProcess, number: int) -> Measured:
    """The log has a record and a marker for each transaction."""
    topic = f"java-transactions-{number}"
    libs = require_libs(KAFKA_LIBS, "kafka")
    command = ["java", "-Xmx256m", "-cp", f"{compile_java([_SOURCE], libs)}:{libs}/*", "TransactionRate"]
    command += [broker.bootstrap, topic, topic, str(bench.settings.transaction_seconds)]
    with fresh_topic(broker, topic):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
        if done.returncode != 0:
            raise RefusedError(f"TransactionRate ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        rate = float(done.stdout.split()[-1])
        with connect(broker) as connection:
            stored = end_offset(connection, topic, 0)
        if stored < 2 * rate * bench.settings.transaction_seconds * 0.9:
            raise RefusedError(f"{rate:.0f} transactions a second, but the log ends at {stored}")
    return [("transactions.java", rate, {"transactions_per_second": rate, "log_end": stored})]
