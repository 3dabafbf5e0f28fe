"""The main job (`make run`) as a user meets it: how far behind its queries are, and what all its processes use.

It runs for `settle_seconds` after the last query has its first answers before anything counts, then for `seconds`. How
far behind a query is, is what the demo publishes (`behind_ms`), and older by the time since then: so a demo that no
longer reports is behind, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers.ports import free_port

from bench.job import Figures, Specification, job_main
from bench.jobs.processor_time import command_line, family, kind_of, tree_processor_seconds
from ottla.client.errors import OttlaError
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.progress import RUNNING, Progress, published

_LOOK_SECONDS, _WEIGH_SECONDS = 1.0, 10.0
_START_SECONDS = 180.0
_STOP_SECONDS = 60.0
_SERIES_SECONDS = 10
# What a JVM says when it has no room for compiled code.
_NO_ROOM = "CodeCache is full"


@dataclass
class Watch:
    """What is seen of one demo."""

    brokers: dict[str, object]
    process: int
    worst_ms: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    worst_delay_ms: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes_by_kind: dict[str, int] = field(default_factory=dict)
    # How many seconds the furthest of all queries was behind at most, for each ten seconds since `began`.
    series: dict[int, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def most_bytes(self) -> int:
        return sum(self.bytes_by_kind.values())

    def queries(self) -> list[Progress]:
        try:
            return published(self.brokers)
        except OttlaError:
            return []

    def all_answer(self) -> bool:
        """Whether each query has answered some event."""
        found = {one.key for one in self.queries() if one.state == RUNNING and one.delay_ms is not None}
        pipelines = map(catalogue.pipeline, catalogue.names())
        return found >= {f"{one.name}.{query.name}" for one in pipelines for query in one.queries}

    def look(self, until: float) -> None:
        weigh_at = 0.0
        while time.monotonic() < until:
            now_ms = time.time_ns() // 1_000_000
            furthest_ms = 0
            for one in self.queries():
                is_behind = one.behind_ms or one.state != RUNNING
                behind_ms = (one.behind_ms or 0) + now_ms - one.at_ms if is_behind else 0
                furthest_ms = max(furthest_ms, behind_ms)
                self.worst_ms[one.key] = max(self.worst_ms[one.key], behind_ms)
                self.worst_delay_ms[one.key] = max(self.worst_delay_ms[one.key], one.delay_ms or 0)
            since = int((time.monotonic() - self.began) // _SERIES_SECONDS * _SERIES_SECONDS)
            self.series[since] = max(self.series.get(since, 0.0), furthest_ms / 1000)
            if time.monotonic() >= weigh_at:
                weigh_at = time.monotonic() + _WEIGH_SECONDS
                self.weigh()
            time.sleep(_LOOK_SECONDS)

    def weigh(self) -> None:
        """Keep the heaviest moment. A process that a JVM has just started is still in the memory of the JVM."""
        found: dict[str, int] = {}
        for process, parent in family(self.process).items():
            if command_line(process) != command_line(parent) or b"java" not in command_line(process):
                kind = kind_of(process)
                found[kind] = found.get(kind, 0) + _proportional_bytes(process)
        if sum(found.values()) > self.most_bytes:
            self.bytes_by_kind = found


def work(specification: Specification) -> Figures:
    port, seconds, settle_seconds = free_port(), specification["seconds"], specification["settle_seconds"]
    with tempfile.TemporaryDirectory(prefix="bench-demo-", ignore_cleanup_errors=True) as data:
        command = [sys.executable, "-m", "ottla", "pipeline", "demo", "--data", data, "--port", str(port)]
        if specification.get("rate") is not None:
            command += ["--generate", str(specification["rate"])]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as demo:
            try:
                watch = Watch({"bootstrap.servers": f"localhost:{port}"}, demo.pid)
                while not watch.all_answer():
                    if demo.poll() is not None or time.monotonic() - watch.began > _START_SECONDS:
                        raise RuntimeError(f"the demo has no answers: {_last_words(Path(data))}")
                    time.sleep(_LOOK_SECONDS)
                started = time.monotonic() - watch.began
                time.sleep(settle_seconds)
                # The JVM compiles most in its first minutes, which count for how far behind queries are, but not here.
                watch.look(until=time.monotonic() + specification["compile_seconds"])
                used, counted = tree_processor_seconds(demo.pid), time.monotonic()
                watch.look(until=counted + seconds - specification["compile_seconds"])
                used, counted = tree_processor_seconds(demo.pid) - used, time.monotonic() - counted
                if demo.poll() is not None:
                    raise RuntimeError(f"the demo has ended: {_last_words(Path(data))}")
            finally:
                demo.terminate()
                demo.wait(_STOP_SECONDS)
        no_room = sum(_NO_ROOM in line for line in (Path(data) / "spark.log").read_text(errors="replace").splitlines())
    return {
        "answers_seconds": started,
        "behind_seconds": max(watch.worst_ms.values(), default=0) / 1000,
        "behind_ms": dict(watch.worst_ms),
        "behind_series": list(watch.series.items()),
        "delay_ms": dict(watch.worst_delay_ms),
        "processor_share": used / counted,
        "memory_mb": watch.most_bytes / 1e6,
        "memory_mb_by_kind": {kind: size / 1e6 for kind, size in watch.bytes_by_kind.items()},
        "code_cache_messages": no_room,
    }


def _proportional_bytes(process: int) -> int:
    """Its memory, with what it shares with others in proportion (PSS)."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _last_words(data: Path) -> str:
    log = data / "spark.log"
    return " ".join(log.read_text(errors="replace").splitlines()[-5:]) if log.exists() else "there is no spark.log"


if __name__ == "__main__":
    job_main(work)
