"""MySocialMedia on its launch day: all its queries run, and how far they are behind is looked at every second.

The lag of a query is what its topics have and its last finished batch had not; that of the pipeline is the lag of the
query that is furthest behind. It is drained in the first second after the burst in which it is no further behind than
it was at most in the usual time before.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from bench.job import Figures, Specification, job_main
from bench.jobs.pipelines import session
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.progress import Reporter
from ottla.pipelines.frame.running import Running, prepare_topics
from ottla.pipelines.social.events import BURST_SECONDS
from ottla.pipelines.social.job import PIPELINE

EVERY = "1 second"
_SAMPLE_SECONDS = 1.0

Sample = dict[str, Any]


def work(specification: Specification) -> Figures:
    """Warm for a while, `usual_seconds` of a usual day, the burst, and on until it is drained."""
    burst_at = specification["warm_seconds"] + specification["usual_seconds"]
    with tempfile.TemporaryDirectory(prefix="bench-launch-day-", ignore_cleanup_errors=True) as data:
        place = Place(specification["bootstrap"], data)
        prepare_topics([PIPELINE], place.brokers)
        spark = session()
        running = Running(spark, place, EVERY)
        try:
            with _feed({**specification, "before_seconds": burst_at}) as feed, Reporter(place.brokers) as reporter:
                running.start([PIPELINE])
                _begin(feed)
                samples = _watched(running, reporter, burst_at, specification)
        finally:
            running.stop()
            spark.stop()
    usual = max(one["lag"] for one in samples if -specification["usual_seconds"] <= one["second"] < 0)
    drained = next((one["second"] for one in samples if _is_drained(one, usual)), None)
    if drained is None:
        raise RuntimeError(f"still {samples[-1]['lag']} behind {samples[-1]['second']:.0f} s after the burst began")
    return {
        "burst_seconds": BURST_SECONDS,
        "usual_lag": usual,
        "peak_lag": max(one["lag"] for one in samples if one["second"] >= 0),
        "drained_seconds": drained - BURST_SECONDS,
        "samples": samples,
    }


def _watched(running: Running, reporter: Reporter, burst_at: float, specification: Specification) -> list[Sample]:
    """Seconds count from the beginning of the burst. A while after it is drained is looked at, too."""
    samples: list[Sample] = []
    started = time.monotonic()
    quiet_since: float | None = None
    while True:
        time.sleep(max(0.0, started + len(samples) * _SAMPLE_SECONDS - time.monotonic()))
        running.check()
        lags = {one.query: one.lag or 0 for one in reporter.report(running.queries)}
        second = time.monotonic() - started - burst_at
        samples.append({"second": round(second, 2), "lag": max(lags.values(), default=0), "lags": lags})
        usual = max((one["lag"] for one in samples if -specification["usual_seconds"] <= one["second"] < 0), default=0)
        if quiet_since is None and _is_drained(samples[-1], usual):
            quiet_since = second
        is_seen = quiet_since is not None and second > quiet_since + specification["quiet_seconds"]
        if is_seen or second > BURST_SECONDS + specification["after_seconds"]:
            return samples


def _is_drained(sample: Sample, usual: int) -> bool:
    return bool(sample["second"] > BURST_SECONDS and sample["lag"] <= usual)


@contextlib.contextmanager
def _feed(specification: Specification) -> Iterator[subprocess.Popen[str]]:
    """The process that sends, with its events made."""
    command = [sys.executable, "-m", "bench.jobs.launch_day_feed"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as feed:
        assert feed.stdin is not None
        assert feed.stdout is not None
        feed.stdin.write(json.dumps(specification) + "\n")
        feed.stdin.flush()
        try:
            if feed.stdout.readline() != "ready\n":
                raise RuntimeError("the process that sends the events did not start")
            yield feed
        finally:
            feed.stdin.close()


def _begin(feed: subprocess.Popen[str]) -> None:
    assert feed.stdin is not None
    feed.stdin.write("\n")
    feed.stdin.flush()


if __name__ == "__main__":
    job_main(work)
