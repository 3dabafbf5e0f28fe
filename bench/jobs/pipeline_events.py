"""The events of a pipeline into its topics: made once, and the same ones sent to each of some brokers."""

from __future__ import annotations

from itertools import islice

from bench.job import Figures, Specification, job_main
from ottla import Producer
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.topics import ensure_topics

START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
SEED = 7
LINGER_MS = 20


def work(specification: Specification) -> Figures:
    """How many were sent to the inputs; what a generator says of its tables before is not counted."""
    pipeline = catalogue.pipeline(specification["pipeline"])
    bootstraps = specification["bootstraps"]
    for bootstrap in bootstraps:
        ensure_topics(pipeline, {"bootstrap.servers": bootstrap})
    inputs = {one.topic.name for one in pipeline.inputs}
    producers = [Producer[bytes, bytes](bootstrap, linger_ms=LINGER_MS) for bootstrap in bootstraps]
    count = 0
    for event in islice(pipeline.generate(SEED, START_MS, specification["rate"]), specification["events"]):
        for producer in producers:
            producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
        count += event.topic in inputs
    for producer in producers:
        producer.close()
    return {"events": count}


if __name__ == "__main__":
    job_main(work)
