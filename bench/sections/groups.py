"""Groups: how soon their members agree again, how many offsets they commit, how many of them a broker carries.

Both brokers get a data directory of their own and shorter sessions than they have by default, so that a member is
missed after a second. The times after a death have that second in them, on both sides.
"""

from __future__ import annotations

import re
import subprocess
import time
from functools import partial
from typing import Any

from tests.peers.paths import KAFKA_LIBS, require_libs
from tests.peers.process import ServerProcess

from bench.job import Figures, run_job
from bench.peers import connect, fresh_topic, new_broker, port_of, remove_topic, stop_broker
from bench.plan import Bench, Step, round_text
from bench.sections.produce import fill
from bench.settings import KIB
from bench.wire import GROUP_COORDINATOR, Connection, RefusedError, create_topic, wait_for_coordinator
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_groups import ListGroupsRequest

SESSION_MS, HEARTBEAT_MS = 1000, 100
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "10",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
PROTOCOLS = ("classic", "consumer")
PARTITIONS_A_MEMBER = 2
COMMITTED, CONSUMED, MANY = "groups-committed", "groups-consumed", "groups-many"
CONNECTIONS, WINDOW = 8, 32
BATCH_BYTES = 16 * KIB
LIST_VERSION = 5
_GIVE_UP_SECONDS = 120.0

Brokers = dict[str, ServerProcess]


def steps(bench: Bench) -> list[Step]:
    brokers: Brokers = {}
    planned: list[Step] = []

    def once(what: str, work: Any, cleans_up: bool = False) -> None:
        for name in bench.peers.names:
            step = partial(work, bench, name, brokers)
            planned.append(Step(f"{name}: {what}", f"groups on {name}", step, cleans_up))

    def in_rounds(what: str, work: Any, warm: bool = True) -> None:
        for number, counted in bench.rounds():
            if counted or warm:
                text = round_text(number, counted, bench.settings.rounds)
                once(f"{what}, {text}", partial(_counted, work, number, counted))

    once("start for groups", begin)
    for protocol in PROTOCOLS:
        for size in bench.settings.group_sizes:
            in_rounds(f"{protocol} group of {size}", partial(agree, protocol, size), warm=size == 2)
    in_rounds("commits", commit)
    once("records to consume", fill_consumed)
    in_rounds("ConsumerPerformance", consume, warm=False)
    once("many groups", make_many)
    in_rounds("start with many groups", load, warm=False)
    once("stop", end, cleans_up=True)
    return planned


def _counted(work: Any, number: int, counted: bool, bench: Bench, name: str, brokers: Brokers) -> None:
    for key, value, figures in work(bench, brokers[name], number + bench.settings.warm_rounds):
        if counted:
            bench.results.keep(key, name, figures)
            bench.results.add(key, name, value)


def begin(bench: Bench, name: str, brokers: Brokers) -> None:
    broker = brokers[name] = new_broker(name, bench.peers.directory / f"{name}-groups", PROPERTIES)
    broker.start_timeout_seconds = _GIVE_UP_SECONDS
    broker.start()
    with connect(broker) as connection:
        create_topic(connection, COMMITTED)
        wait_for_coordinator(connection, GROUP_COORDINATOR)


def end(bench: Bench, name: str, brokers: Brokers) -> None:
    stop_broker(name, brokers)


Measured = list[tuple[str, float, Figures]]


def agree(protocol: str, size: int, bench: Bench, broker: ServerProcess, number: int) -> Measured:
    topic = f"members-{protocol}-{size}-{number}"
    partitions = size * PARTITIONS_A_MEMBER
    with fresh_topic(broker, topic, partitions):
        figures = run_job(
            "members",
            {
                "port": port_of(broker),
                "topic": topic,
                "group": f"group-{topic}",
                "protocol": protocol,
                "partitions": partitions,
                "members": size,
                "times": bench.settings.group_changes,
                "session_ms": SESSION_MS,
                "heartbeat_ms": HEARTBEAT_MS,
            },
        )
    return [
        (f"groups.joins.{protocol}.{size}", figures["joined_seconds"], figures),
        (f"groups.dies.{protocol}.{size}", figures["died_seconds"], {}),
    ]


def commit(bench: Bench, broker: ServerProcess, number: int) -> Measured:
    specification = {
        "what": "commits",
        "port": port_of(broker),
        "topic": COMMITTED,
        "group": f"commits-{number}",
        "connections": CONNECTIONS,
        "window": WINDOW,
        "seconds": bench.settings.commit_seconds,
    }
    figures = run_job("commits", specification)
    return [("groups.commits", figures["rate"], figures)]


def fill_consumed(bench: Bench, name: str, brokers: Brokers) -> None:
    with connect(brokers[name]) as connection:
        create_topic(connection, CONSUMED)
    fill(brokers[name], CONSUMED, BATCH_BYTES, bench.settings.consumer_bytes)


def consume(bench: Bench, broker: ServerProcess, number: int) -> Measured:
    """Kafka's own tool, in a group of one; what counts is the rate after the group was formed."""
    records = bench.settings.consumer_bytes // 128
    command = ["java", "-Xmx512m", "-cp", f"{require_libs(KAFKA_LIBS, 'kafka')}/*"]
    command += ["org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", broker.bootstrap]
    command += ["--topic", CONSUMED, "--num-records", str(records), "--group", f"performance-{number}"]
    command += ["--timeout", "60000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_GIVE_UP_SECONDS)
    table = [line.split(", ") for line in done.stdout.splitlines() if re.match(r"\d{4}-", line)]
    if done.returncode != 0 or not table or int(table[-1][4]) < records:
        raise RefusedError(f"ConsumerPerformance ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    rebalance_ms, rate = float(table[-1][6]), float(table[-1][9])
    return [("groups.performance", rate, {"records_per_second": rate, "rebalance_ms": rebalance_ms})]


def make_many(bench: Bench, name: str, brokers: Brokers) -> None:
    specification = {
        "what": "groups",
        "port": port_of(brokers[name]),
        "topic": COMMITTED,
        "group": MANY,
        "groups": bench.settings.group_count,
        "connections": CONNECTIONS,
        "window": WINDOW,
    }
    run_job("commits", specification)
    remove_topic(brokers[name], CONSUMED)


def load(bench: Bench, broker: ServerProcess, number: int) -> Measured:
    """A clean stop, then the time from the start of the process until all groups are known, and a list of them."""
    broker.stop()
    started = time.perf_counter()
    broker.start()
    with connect(broker) as connection:
        while listed(connection) < bench.settings.group_count:
            if time.perf_counter() - started > _GIVE_UP_SECONDS:
                raise RefusedError(f"{broker.name} does not know its groups after {_GIVE_UP_SECONDS:.0f} s")
            time.sleep(0.01)
        loaded = time.perf_counter() - started
        listing = time.perf_counter()
        count = listed(connection)
        took = time.perf_counter() - listing
    return [
        ("groups.load", loaded, {"seconds": loaded, "groups": count}),
        ("groups.list", took, {"seconds": took, "groups": count}),
    ]


def listed(connection: Connection) -> int:
    """How many of the many groups a broker lists; none while it is still loading them."""
    answer = connection.call(ListGroupsRequest(), LIST_VERSION)
    if answer.error_code != ErrorCode.NONE:
        return 0
    return sum(group.group_id.startswith(MANY) for group in answer.groups)
