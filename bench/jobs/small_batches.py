"""What a pipeline costs with few new events: all its queries run, and so many events come in at a time.

All queries have the same pace. Each round sends the next events of the pipeline's generator at once and waits until
every query has taken all that there is, also what another query has written meanwhile. What counts is the processor
time of Spark, of all Python processes that it started and of the broker, per round; the median of the rounds after
`warm` ones. The process that sends and looks is the driver's, as in `ottla pipeline run --generate`.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench.job import Figures, Specification, job_main
from bench.jobs.pipeline_events import SEED, START_MS
from bench.jobs.processor_time import tree_processor_by_kind, tree_processor_seconds
from ottla import Admin, Producer
from ottla.pipelines.frame import catalogue, job
from ottla.pipelines.frame.delays import Offsets, taken_by
from ottla.pipelines.frame.generating import Event
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.session import spark_session
from ottla.pipelines.frame.topics import ensure_topics

_EVERY = "500 milliseconds"
_GLANCE_SECONDS = 0.25
_MOST_SECONDS = 120.0
# Kept up with for so many glances in a row: what follows a batch, such as one that only forgets, is part of its cost.
_QUIET_GLANCES = 6


def work(specification: Specification) -> Figures:
    pipeline = catalogue.pipeline(specification["pipeline"])
    brokers = {"bootstrap.servers": specification["bootstrap"]}
    ensure_topics(pipeline, brokers)
    settings = {"spark.sql.shuffle.partitions": "1", **specification.get("settings", {})}
    spark = spark_session(master="local[2]", settings=settings)
    events = pipeline.generate(SEED, START_MS, pipeline.rate)
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-small-", ignore_cleanup_errors=True) as data,
        Admin(config=brokers) as admin,
        Producer[bytes, bytes](config=brokers) as producer,
    ):
        place = Place(specification["bootstrap"], data)
        _send(producer, itertools.islice(events, specification["events"]))
        queries = [replace(query, every=None) for query in pipeline.queries]
        running = [job.start_query(spark, pipeline, query, place, _EVERY) for query in queries]
        _await_all_taken(running, admin)
        for number in range(specification["warm"] + specification["rounds"]):
            if number == specification["warm"]:
                kinds = tree_processor_by_kind()
            before, began = _processor_seconds(specification), time.monotonic()
            _send(producer, itertools.islice(events, specification["events"]))
            _await_all_taken(running, admin)
            quiet = _QUIET_GLANCES * _GLANCE_SECONDS
            found.append((_processor_seconds(specification) - before, time.monotonic() - began - quiet))
        kinds = {kind: used - kinds.get(kind, 0.0) for kind, used in tree_processor_by_kind().items()}
        batches = sum(len(query.recentProgress) for query in running)
        for query in running:
            query.stop()
    spark.stop()
    counted = found[specification["warm"] :]
    return {
        "processor_seconds": statistics.median(used for used, _ in counted),
        "seconds": statistics.median(took for _, took in counted),
        "rounds": [used for used, _ in found],
        "by_kind": {kind: used / specification["rounds"] for kind, used in kinds.items()},
        "batches": batches,
    }


def _send(producer: Producer[bytes, bytes], events: Iterator[Event]) -> None:
    for event in events:
        producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
    producer.flush()


def _await_all_taken(running: list[Any], admin: Admin) -> None:
    ends_at = time.monotonic() + _MOST_SECONDS
    quiet = 0
    while quiet < _QUIET_GLANCES:
        time.sleep(_GLANCE_SECONDS)
        if time.monotonic() > ends_at:
            raise RuntimeError(f"not worked off: {[(query.name, query.status) for query in running]}")
        quiet = quiet + 1 if all(_has_all(query, admin) for query in running) else 0


def _has_all(query: Any, admin: Admin) -> bool:
    failure = query.exception()
    if failure is not None:
        raise failure
    last = query.lastProgress
    taken: Offsets = {} if last is None else taken_by(last)
    if not taken:
        return False
    ends = admin.list_offsets(sorted(taken), isolation_level="read_committed").raise_for_errors()
    return all(end is None or taken[one.topic, one.partition] >= end.offset for one, end in ends.items())


def _processor_seconds(specification: Specification) -> float:
    broker = specification.get("broker_process")
    return tree_processor_seconds() + (0.0 if broker is None else tree_processor_seconds(broker))


if __name__ == "__main__":
    job_main(work)
