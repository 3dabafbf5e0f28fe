"""The cleaner at work: how many bytes it cleans in a second, and what that costs a producer meanwhile.

A topic is filled with keyed records and then told to compact. Its closed segments count as cleaned when the broker's
`cleaner-offset-checkpoint`, a file that both brokers write, has reached the segment that is still open. This happens
beside a producer of a fixed rate, whose slowest answers are compared with those it had before, and beside a producer as
fast as it can be, whose rate is compared.

Both depend on what the host gives to its machines more than on anything else. So they have more rounds than other
figures, and the slowest answers are also taken beside a process that only computes, with the priority of Ottla's
cleaner: what that costs a producer is what a busy processor costs, whatever it is busy with. The broker that is not
measured is stopped meanwhile: a JVM goes on compiling for minutes after its load has ended, at the other's expense.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.peers.process import ServerProcess

from bench.job import Figures, run_job
from bench.memory import touch
from bench.peers import connect, fresh_topic, new_broker, port_of, remove_topic, stop_broker
from bench.plan import Bench, Step, round_text
from bench.rows import CLEANING, COMPUTING, QUIET
from bench.settings import KIB, MIB
from bench.wire import RefusedError, alter_topic, create_topic

SEGMENT_BYTES = 64 * MIB
BATCH_BYTES = 16 * KIB
# the cleaner looks for work often, and nobody waits for the delay after which replaced files go
PROPERTIES = {"log.cleaner.backoff.ms": "100"}
# a broker that stood still for a while is not to be taken for dead, by Kafka's controller
PATIENT = {"kafka": {"broker.session.timeout.ms": "3600000"}}
CONFIGS = {
    "cleanup.policy": "delete",
    "segment.bytes": str(SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "1000",
}
_LOOK_SECONDS = 0.01
_GIVE_UP_SECONDS = 120.0

Brokers = dict[str, ServerProcess]
Measure = Callable[[Bench, str, Brokers, Path, int, bool], None]


def steps(bench: Bench) -> list[Step]:
    brokers: Brokers = {}
    source = bench.peers.directory / "keyed.batches"
    names = bench.peers.names
    planned = [Step("compaction: make the records", "compaction", partial(make, bench, source))]
    planned += [
        Step(f"{name}: start for compaction", f"compaction on {name}", partial(begin, bench, name, brokers))
        for name in names
    ]
    rounds = bench.settings.rounds * bench.settings.compaction_pairs
    for what, measure in (("paced producer", beside_paced), ("fast producer", beside_fast)):
        for number, counted in bench.rounds(rounds):
            for name in names:
                title = f"{name}: compaction, {what}, {round_text(number, counted, rounds)}"
                work = partial(alone, measure, bench, name, brokers, source, number, counted)
                planned.append(Step(title, f"compaction on {name}", work))
    planned += [
        Step(f"{name}: stop", f"compaction on {name}", partial(stop_broker, name, brokers), True) for name in names
    ]
    return planned


def make(bench: Bench, source: Path) -> None:
    settings = bench.settings
    size = {"total_bytes": settings.compaction_log_bytes, "keys": settings.compaction_keys}
    run_job("keyed", {"what": "make", "path": str(source), **size})


def begin(bench: Bench, name: str, brokers: Brokers) -> None:
    brokers[name] = new_broker(name, bench.peers.directory / f"{name}-compaction", PROPERTIES | PATIENT.get(name, {}))
    brokers[name].start()


def alone(
    measure: Measure, bench: Bench, name: str, brokers: Brokers, source: Path, number: int, counted: bool
) -> None:
    """Measure while the other brokers stand still."""
    with ExitStack() as paused:
        for other, broker in brokers.items():
            if other != name:
                paused.enter_context(broker.paused())
        measure(bench, name, brokers, source, number, counted)


def beside_paced(bench: Bench, name: str, brokers: Brokers, source: Path, number: int, counted: bool) -> None:
    topic = f"paced-{number + bench.settings.warm_rounds}"
    load = {"rate": bench.settings.compaction_rate}
    seconds = bench.settings.compaction_quiet_seconds
    with fresh_topic(brokers[name], "load-computing"), computing():
        floor_load = {**load, "port": port_of(brokers[name]), "topic": "load-computing", "seconds": seconds}
        floor = run_job("paced", floor_load)
    quiet, busy, cleaned = beside(bench, brokers[name], source, topic, "paced", load)
    if counted:
        keep_pair(bench, name, "compaction.floor", quiet, floor, "p99_ms", COMPUTING)
        bench.results.keep("compaction.rate", name, cleaned)
        bench.results.add("compaction.rate", name, cleaned["bytes_per_second"] / 1e6)
        keep_pair(bench, name, "compaction.p99", quiet, busy, "p99_ms")


def beside_fast(bench: Bench, name: str, brokers: Brokers, source: Path, number: int, counted: bool) -> None:
    topic = f"fast-{number + bench.settings.warm_rounds}"
    load = {
        "batch_bytes": BATCH_BYTES,
        "connections": 1,
        "chunk_requests": 8,
        "window_chunks": 2,
        "limit_bytes": bench.settings.produce_limit_bytes,
        "verify": False,
        "warm_seconds": 0.2,
    }
    touched_bytes = 4 * bench.settings.produce_limit_bytes
    quiet, busy, cleaned = beside(bench, brokers[name], source, topic, "produce", load, touched_bytes)
    if counted:
        bench.results.keep("compaction.busy_rate", name, cleaned)
        bench.results.add("compaction.busy_rate", name, cleaned["bytes_per_second"] / 1e6)
        keep_pair(bench, name, "compaction.produce", quiet, busy, "requests_per_second")


def keep_pair(
    bench: Bench, name: str, key: str, quiet: Figures, busy: Figures, figure: str, how: str = CLEANING
) -> None:
    for side, figures in ((QUIET, quiet), (how, busy)):
        bench.results.keep(f"{key}.{name}", f"{name}, {side}", figures)
        bench.results.add(f"{key}.{name}", side, figures[figure])


@contextmanager
def computing() -> Iterator[None]:
    """A process that only computes, for the length of the block."""
    spin = "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", spin])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def beside(
    bench: Bench,
    broker: ServerProcess,
    source: Path,
    topic: str,
    job: str,
    load: dict[str, Any],
    touched_bytes: int = 0,
) -> tuple[Figures, Figures, Figures]:
    """What the job reports without and with a cleaning beside it, and how fast the cleaning was. A job that writes much
    needs memory that the host has backed; to others the host's work on what was touched and freed is a disturbance."""
    port = port_of(broker)
    load_topic = f"load-{topic}"
    with connect(broker) as connection:
        create_topic(connection, topic, configs=CONFIGS)
    with fresh_topic(broker, load_topic):
        run_job("keyed", {"what": "fill", "path": str(source), "port": port, "topic": topic})
        os.sync()
        load = {**load, "port": port, "topic": load_topic}
        touch(touched_bytes)
        quiet = run_job(job, {**load, "connections": 1, "seconds": bench.settings.compaction_quiet_seconds})
        os.sync()
        touch(touched_bytes)
        with cleaning(broker, topic, bench.peers.directory / f"{topic}-cleaned") as (done, cleaned):
            busy = run_job(job, {**load, "seconds": _GIVE_UP_SECONDS, "until": str(done)})
    remove_topic(broker, topic)
    return quiet, busy, cleaned


@contextmanager
def cleaning(broker: ServerProcess, topic: str, done: Path) -> Iterator[tuple[Path, Figures]]:
    """Have the topic cleaned during the block; the file `done` appears when it is."""
    directory = broker.partition_directory(topic, 0)
    *closed, active = sorted(directory.glob("*.log"))
    dirty_bytes = sum(path.stat().st_size for path in closed)
    figures: Figures = {}

    def watch() -> None:
        started = time.perf_counter()
        while cleaned_up_to(broker.data_directory, topic) < int(active.stem):
            if time.perf_counter() - started > _GIVE_UP_SECONDS:
                done.touch()
                return
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - started
        kept_bytes = sum(path.stat().st_size for path in directory.glob("*.log")) - active.stat().st_size
        figures.update(
            {"seconds": seconds, "dirty_bytes": dirty_bytes, "kept_bytes": kept_bytes}
            | {"bytes_per_second": dirty_bytes / seconds}
        )
        done.touch()

    with connect(broker) as connection:
        alter_topic(connection, topic, {"cleanup.policy": "compact"})
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield done, figures
    finally:
        watcher.join()
        done.unlink(missing_ok=True)
    if not figures:
        raise RefusedError(f"{broker.name} had not cleaned {topic} after {_GIVE_UP_SECONDS:.0f} s")


def cleaned_up_to(data_directory: Path, topic: str) -> int:
    """The first dirty offset of partition 0 as the broker keeps it; -1 when there is none yet."""
    try:
        lines = (data_directory / "cleaner-offset-checkpoint").read_text().splitlines()
    except FileNotFoundError:
        return -1
    found = [line.split() for line in lines if line.startswith(f"{topic} 0 ")]
    return int(found[0][2]) if found else -1
