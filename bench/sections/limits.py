"""The limit of the driver: the same jobs against a sink that only counts bytes.

For produce no broker can be shown to be faster. For fetch the sink is one plain `sendfile` loop with the buffers the
system chooses, and a broker that chooses its socket buffers well may pass it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

from tests.peers.paths import REPOSITORY

from bench.batches import filled, one_record
from bench.job import job_environment, run_job
from bench.plan import Bench, Step
from bench.sections.fetch import POSITIONS, SIZES
from bench.sections.produce import SHAPES, Shape
from bench.wire import fetch_request, produce_request

_TOPIC = "sink"


def steps(bench: Bench, sections: tuple[str, ...]) -> list[Step]:
    planned = []
    if "produce" in sections:
        for shape in SHAPES:
            if shape.connections == 1:
                title = f"limit of the driver: {shape.key}"
                planned.append(Step(title, title, partial(measure_produce, bench, shape)))
    if "fetch" in sections:
        for key, size_bytes in SIZES.items():
            title = f"limit of the driver: {key}"
            planned.append(Step(title, title, partial(measure_fetch, bench, key, size_bytes)))
    return planned


def measure_produce(bench: Bench, shape: Shape) -> None:
    batch = filled(shape.batch_bytes) if shape.batch_bytes else one_record()
    request_bytes = len(produce_request(_TOPIC, 0, batch.data, 0))
    sink = {
        "kind": "produce",
        "topic": _TOPIC,
        "request_bytes": request_bytes,
        "chunk_requests": shape.chunk_requests,
    }
    job = {
        **shape.specification(),
        "topic": _TOPIC,
        "warm_seconds": 0.1,
        "seconds": bench.settings.limit_seconds,
        "limit_bytes": 1 << 60,
        "verify": False,
    }
    bench.results.limits[shape.key] = _against_sink(sink, "produce", job)["requests_per_second"]


def measure_fetch(bench: Bench, key: str, size_bytes: int) -> None:
    request_bytes = len(fetch_request(bytes(16), 0, 0, size_bytes, 0))
    sink = {
        "kind": "fetch",
        "request_bytes": request_bytes,
        "answer_bytes": size_bytes,
        "positions": POSITIONS,
    }
    job = {
        "topic_id": bytes(16).hex(),
        "end_offset": POSITIONS,
        "offsets_per_request": 1,
        "positions": POSITIONS,
        "where": "spread",
        "request_bytes": size_bytes,
        "warm_seconds": 0.1,
        "seconds": bench.settings.limit_seconds,
        "verify": False,
    }
    bench.results.limits[key] = _against_sink(sink, "fetch", job)["bytes_per_second"] / 1e9


def _against_sink(sink: dict[str, object], job: str, specification: dict[str, object]) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.jobs.sink", json.dumps(sink)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=REPOSITORY, env=job_environment(), stdin=subprocess.DEVNULL
    )
    with process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            return run_job(job, {**specification, "port": port})
        finally:
            process.kill()
