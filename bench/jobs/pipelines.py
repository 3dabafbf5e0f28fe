"""Pipelines that work off what is in their topics, in turns, in one warm Spark session.

A drain is what `ottla pipeline run --once` does: each query of the pipeline from the first record to the last, with a
checkpoint of its own, its state in RocksDB, and its results written exactly once. The clock runs from the start of the
first query until the last one has ended.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

from tests.peers.paths import SPARK_CONNECTOR_LIBS, require_libs

from bench.job import Figures, Specification, job_main
from bench.jobs.processor_time import tree_processor_seconds
from ottla import Admin
from ottla.pipelines.frame import catalogue, job
from ottla.pipelines.frame.pipeline import JUDGED, RECORDS, Pipeline, Source
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.session import spark_session

CORES = 2
_COUNTING = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"


def session() -> Any:
    """As pipelines run on one machine, with Spark's connector for those that read by it."""
    jars = sorted(map(str, require_libs(SPARK_CONNECTOR_LIBS, "spark-connector").glob("*.jar")))
    settings = {
        "spark.jars": ",".join(jars),
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    return spark_session(master=f"local[{CORES}]", settings=settings)


def drain(spark: Any, specification: Specification) -> Figures:
    """One pipeline, from nothing to the end."""
    pipeline = catalogue.pipeline(specification["pipeline"])
    events = specification["events"]
    queries: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-", ignore_cleanup_errors=True) as data:
        place = Place(specification["bootstrap"], data, specification["source"], specification["most_per_batch"])
        processor, started = tree_processor_seconds(), time.perf_counter()
        job.run_once(spark, pipeline, place, queries.append)
        seconds = time.perf_counter() - started
        used = tree_processor_seconds() - processor
    told = [_told(query) for query in queries]
    # One query reads every record of every input and of every table, and judges it.
    there, judged = _records_of(pipeline, specification["bootstrap"]), max(query["judged"] for query in told)
    if judged != there:
        raise RuntimeError(f"{pipeline.name} read {judged} of {there} records")
    took = [took_ms for query in told for took_ms in query["batches_ms"]]
    return {
        "rate": events / seconds,
        "seconds": seconds,
        "processor_us": used / events * 1e6,
        "batch_ms": statistics.median(took),
        "slowest_batch_ms": max(took),
        "state_bytes": sum(query["state_bytes"] for query in told),
        "state_rows": sum(query["state_rows"] for query in told),
        "queries": told,
    }


def _records_of(pipeline: Pipeline, bootstrap: str) -> int:
    sources: tuple[Source, ...] = (*pipeline.inputs, *pipeline.tables)
    names = [one.topic.name for one in sources]
    with Admin(bootstrap) as admin:
        topics = admin.describe_topics(names).raise_for_errors()
        ends = admin.list_offsets([(name, one.partition) for name in names for one in topics[name].partitions])
        return sum(end.offset for end in ends.raise_for_errors().values() if end is not None)


def _told(query: Any) -> Figures:
    """What one query says of its batches, and the most that it kept at a time."""
    progress = query.recentProgress
    durations: dict[str, int] = {}
    for one in progress:
        for name, took_ms in one["durationMs"].items():
            durations[name] = durations.get(name, 0) + took_ms
    states = [one["stateOperators"] for one in progress]
    return {
        "query": query.name,
        "judged": sum(one["observedMetrics"][JUDGED][RECORDS] for one in progress if JUDGED in one["observedMetrics"]),
        "batches_ms": [one["durationMs"]["triggerExecution"] for one in progress if one["numInputRows"]],
        "durations_ms": durations,
        "state_rows": max((sum(one["numRowsTotal"] for one in state) for state in states), default=0),
        "state_bytes": max((sum(one["memoryUsedBytes"] for one in state) for state in states), default=0),
    }


def work(specification: Specification) -> Figures:
    """Rounds of the named sides in turns; of the first `warm` of them only the rows of the state are kept.

    Counting these costs a read for each write, so pipelines do not, and neither do the rounds that count here.
    """
    found: list[Figures] = []
    state_rows: dict[str, int] = {}
    spark = session()
    try:
        for number in range(specification["warm"] + specification["rounds"]):
            is_warm = number < specification["warm"]
            spark.conf.set(_COUNTING, str(is_warm).lower())
            for side in specification["sides"]:
                figures = drain(spark, {**specification, **side})
                if is_warm:
                    state_rows[side["side"]] = figures["state_rows"]
                else:
                    found.append({**figures, "side": side["side"], "state_rows": state_rows[side["side"]]})
    finally:
        spark.stop()
    return {"runs": found}


if __name__ == "__main__":
    job_main(work)
