"""Client libraries beside each other on one broker, Ottla: Ottla's own, confluent-kafka and aiokafka.

Both sides of a row have the same acks, idempotence, linger and batch size (`bench.jobs.library`), and the log holds
exactly what was sent afterwards. A ratio is always Ottla's client over the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.batches import RECORD_BYTES
from bench.job import Figures, run_job
from bench.memory import touch
from bench.peers import connect, fresh_topic
from bench.plan import Bench, Step, round_text
from bench.rows import AIOKAFKA, CODECS, CONFLUENT, OTTLA, OTTLA_CLIENT, UNPAUSED
from bench.wire import RefusedError, end_offset

_JOBS = {
    OTTLA_CLIENT: "library_ottla",
    CONFLUENT: "library_confluent",
    UNPAUSED: "library_confluent",
    AIOKAFKA: "library_aiokafka",
}
_STORED_RECORD_BYTES = 107  # of a record of 100 bytes in a large batch


@dataclass(frozen=True, slots=True)
class Measurement:
    """One side of a row, or of several: which library does what. `fill` records are in the topic before it begins."""

    keys: tuple[str, ...]
    library: str
    specification: dict[str, Any]
    figure: str = "records_per_second"
    fill: int = 0

    @property
    def sends(self) -> int:
        is_sending = self.specification["what"] in ("produce", "produce_async", "send_table")
        return int(self.specification["records"]) if is_sending else 0


def measurements(bench: Bench) -> Iterator[Measurement]:
    settings = bench.settings
    records, slow = settings.library_records, settings.library_async_records
    for reports in (False, True):
        name = "libraries.produce" + (".reports" if reports else "")
        sent = {"what": "produce", "records": records, "reports": reports}
        yield Measurement((name,), CONFLUENT, sent)
        yield Measurement((name,), OTTLA_CLIENT, sent)
        name = "libraries.async" + (".reports" if reports else "")
        yield Measurement((name,), AIOKAFKA, {**sent, "records": slow})
        yield Measurement((name,), OTTLA_CLIENT, {**sent, "what": "produce_async"})
    read = {"what": "consume", "records": records}
    yield from reading("libraries.consume", read, read)
    for codec in CODECS:
        large = settings.library_table_records
        sent, read = {"records": records, "codec": codec}, {"records": large, "codec": codec}
        name = f"libraries.send_table.{codec}"
        yield Measurement((name,), CONFLUENT, {**sent, "what": "produce"})
        yield Measurement((name,), OTTLA_CLIENT, {**read, "what": "send_table"})
        yield from reading(f"libraries.tables.{codec}", {**sent, "what": "consume"}, {**read, "what": "tables"})


def reading(name: str, theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[Measurement]:
    """confluent-kafka with its defaults, and without the pause that they make; ours is compared with both."""
    unpaused = f"{name}.unpaused"
    yield Measurement((name,), CONFLUENT, theirs, fill=theirs["records"])
    yield Measurement((unpaused,), UNPAUSED, {**theirs, "unpaused": True}, fill=theirs["records"])
    yield Measurement((name, unpaused), OTTLA_CLIENT, ours, fill=ours["records"])


def steps(bench: Bench) -> list[Step]:
    rounds = bench.settings.rounds
    planned = []
    for number, counted in bench.rounds():
        for measurement in measurements(bench):
            text = f"{measurement.library}: {measurement.keys[0]}, {round_text(number, counted, rounds)}"
            work = partial(measure, bench, measurement, counted)
            planned.append(Step(text, f"{measurement.keys[0]} by {measurement.library}", work))
    rounds *= bench.settings.library_pairs
    for number, counted in bench.rounds(rounds):
        for library, what in ((CONFLUENT, "latency"), (OTTLA_CLIENT, "latency"), (OTTLA_CLIENT, "latency_async")):
            text = f"{library}: {what}, {round_text(number, counted, rounds)}"
            planned.append(Step(text, f"{what} of {library}", partial(measure_latency, bench, library, what, counted)))
    return planned + [
        Step(f"drain a large log by {by}", f"drain by {by}", partial(measure_memory, bench, by))
        for by in ("records", "tables")
    ]


def measure(bench: Bench, measurement: Measurement, counted: bool) -> None:
    broker = bench.peers.get(OTTLA)
    topic = measurement.keys[0].replace(".", "-")
    specification = {"bootstrap": broker.bootstrap, "topic": topic, **measurement.specification}
    with fresh_topic(broker, topic):
        touch(2 * (measurement.fill + measurement.sends) * _STORED_RECORD_BYTES)
        if measurement.fill:
            fill(broker.bootstrap, topic, measurement.fill, str(specification.get("codec", "none")))
        figures = run_job(_JOBS[measurement.library], specification)
        with connect(broker) as connection:
            end = end_offset(connection, topic, 0)
        if end != measurement.fill + measurement.sends:
            raise RefusedError(f"{measurement.library} sent {measurement.sends} records, the log ends at {end}")
    for key in measurement.keys if counted else ():
        bench.results.keep(key, measurement.library, figures)
        bench.results.add(key, measurement.library, figures[measurement.figure])


def fill(
    bootstrap: str, topic: str, records: int, codec: str, partition: int = 0, record_bytes: int = RECORD_BYTES
) -> Figures:
    """Put that many records into a partition."""
    where = {"bootstrap": bootstrap, "topic": topic, "partition": partition}
    what = {"what": "send_table", "records": records, "codec": codec, "record_bytes": record_bytes}
    return run_job(_JOBS[OTTLA_CLIENT], where | what)


def measure_latency(bench: Bench, library: str, what: str, counted: bool) -> None:
    broker, settings = bench.peers.get(OTTLA), bench.settings
    topic = f"libraries-{what}"
    with fresh_topic(broker, topic):
        seconds = settings.latency_seconds if counted else 1.0
        load = {"what": what, "rate": settings.latency_rate, "seconds": seconds}
        figures = run_job(_JOBS[library], {"bootstrap": broker.bootstrap, "topic": topic, **load})
    if not counted:
        return
    # The async client is compared with the same runs of the other library.
    keys = ("libraries.async_",) if what == "latency_async" else ("libraries.",)
    for prefix in ("libraries.", "libraries.async_") if library == CONFLUENT else keys:
        for figure in ("p50", "p99"):
            bench.results.keep(f"{prefix}{figure}", library, figures)
            bench.results.add(f"{prefix}{figure}", library, figures[f"{figure}_ms"])


def measure_memory(bench: Bench, by: str) -> None:
    """How much memory a process takes at most while it reads a log that is much larger."""
    broker = bench.peers.get(OTTLA)
    topic = f"libraries-drain-{by}"
    records = bench.settings.library_drain_bytes // _STORED_RECORD_BYTES
    with fresh_topic(broker, topic):
        filled = fill(broker.bootstrap, topic, records, "none")
        specification = {"what": "drain", "by": by, "records": int(filled["records"])}
        figures = run_job(_JOBS[OTTLA_CLIENT], {"bootstrap": broker.bootstrap, "topic": topic, **specification})
    bench.results.keep(f"libraries.memory.{by}", OTTLA_CLIENT, figures)
    bench.results.add(f"libraries.memory.{by}", OTTLA_CLIENT, figures["peak_mb"])
