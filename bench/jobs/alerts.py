"""How long after the commit of a large payment its alert can be read: `ottla pipeline run mybank --generate`, as a user
has it, beside a consumer that sees alerts only when their transaction is committed.

The clock begins when the database commits, which is what an alert says itself, and ends in the consumer. Both are
clocks of this machine.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.job import Figures, Specification, job_main
from ottla import Consumer
from ottla.pipelines.bank.job import ALERTS, PIPELINE
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.running import prepare_topics

_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.5


def work(specification: Specification) -> Figures:
    """Until `alerts` of them were seen after `warm_seconds`, counted from the first alert."""
    bootstrap = specification["bootstrap"]
    with tempfile.TemporaryDirectory(prefix="bench-alerts-", ignore_cleanup_errors=True) as data:
        prepare_topics([PIPELINE], Place(bootstrap, data).brokers)
        with _running(bootstrap, Path(data), specification["rate"]) as pipeline:
            took = list(_seen(bootstrap, pipeline, specification))
    return {"took_ms": sorted(took)}


def _seen(bootstrap: str, pipeline: subprocess.Popen[bytes], specification: Specification) -> Iterator[float]:
    """Milliseconds from commit to arrival, of each alert."""
    give_up = time.monotonic() + specification["most_seconds"]
    left, warm_until = specification["alerts"], None
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        partitions = next(topic.partitions for topic in PIPELINE.results if topic.name == ALERTS)
        consumer.assign([(ALERTS, partition, 0) for partition in range(partitions)])
        while left > 0:
            if time.monotonic() > give_up or pipeline.poll() is not None:
                raise RuntimeError(f"{left} alerts are missing; the pipeline's code is {pipeline.poll()}")
            for record in consumer.poll(_POLL_SECONDS):
                now_ms = time.time() * 1000
                warm_until = warm_until or time.monotonic() + specification["warm_seconds"]
                if time.monotonic() > warm_until:
                    left -= 1
                    yield now_ms - json.loads(record.value or b"{}")["commit_time"]


@contextlib.contextmanager
def _running(bootstrap: str, data: Path, rate: float) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "ottla", "pipeline", "run", PIPELINE.name, "--json", "--generate", str(rate)]
    with open(data / "told", "wb") as told:
        pipeline = subprocess.Popen(
            [*command, "--bootstrap", bootstrap, "--data", str(data / "data")], stdout=told, stderr=subprocess.STDOUT
        )
    try:
        yield pipeline
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{(data / 'told').read_text()[-4000:]}") from error
    finally:
        pipeline.send_signal(signal.SIGINT)
        try:
            pipeline.wait(_STOP_SECONDS)
        finally:
            pipeline.kill()
            pipeline.wait()


if __name__ == "__main__":
    job_main(work)
