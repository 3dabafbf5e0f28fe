"""The pipelines: Campaign on Ottla beside Apache Kafka, each of the six alone, alerts, a launch day, the offline load.

Beside each other are two whole ways: events in Ottla read by `format("ottla")`, and the same events in Apache Kafka
read by Spark's own connector. All else is the same on both: queries, state, checkpoints, and the sink, which is
Ottla's exactly-once one on either broker, since the connector has none.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.peers.process import ServerProcess

from bench.job import Figures, run_job
from bench.peers import remove_topic
from bench.plan import Bench, Step
from bench.rows import CONNECTOR, KAFKA, OTTLA, PIPELINES, SPARK_SOURCE
from bench.sections import offline_load
from bench.wire import RefusedError
from ottla.cli.pipeline_demo import SPARK_SETTINGS
from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.progress import PROGRESS
from ottla.pipelines.frame.results import read_tables

# Events a second of their own time: half a million is twenty minutes, so there are several windows.
_JVM = "spark.driver.extraJavaOptions"
_EVENT_RATE = 400.0
_DRAINS_SECONDS = 900.0
_ALERTS = {"warm_seconds": 60, "alerts": 200, "rate": 40.0, "most_seconds": 240}
_LAUNCH_DAY = {"warm_seconds": 30, "usual_seconds": 20, "quiet_seconds": 10, "after_seconds": 150}


def campaign_steps(bench: Bench) -> list[Step]:
    """A section of its own: it has a goal."""
    if not {KAFKA, OTTLA} <= set(bench.peers.names):
        return []
    return [Step("Campaign on both brokers", "Campaign", partial(measure_campaign, bench))]


def alert_steps(bench: Bench) -> list[Step]:
    if OTTLA not in bench.peers.names:
        return []
    return [Step("alerts of MyBank", "alerts", partial(measure_alerts, bench))]


def small_steps(bench: Bench) -> list[Step]:
    if OTTLA not in bench.peers.names:
        return []
    return [
        Step(f"{title} with few events", "few events", partial(measure_small, bench, name))
        for name, title in PIPELINES.items()
    ] + [Step("the median of the six", "few events", partial(keep_median, bench))]


def demo_steps(bench: Bench) -> list[Step]:
    """It starts a broker of its own."""
    if OTTLA not in bench.peers.names:
        return []
    rate = bench.settings.demo_rate
    return [
        Step(f"make run, {number + 1} of {bench.settings.rounds}", "make run", partial(measure_demo, bench, "demo"))
        for number in range(bench.settings.rounds)
    ] + [
        Step("the worst of these", "make run", partial(keep_worst, bench, "demo")),
        Step(f"make run, {rate:,} events a second", "busy", partial(measure_demo, bench, "demo.busy", rate)),
        Step("how it was", "busy", partial(keep_worst, bench, "demo.busy")),
    ]


def steps(bench: Bench) -> list[Step]:
    if OTTLA not in bench.peers.names:
        return []
    return [
        *(
            Step(f"{title} alone", f"{title} alone", partial(measure_alone, bench, name))
            for name, title in PIPELINES.items()
        ),
        Step("MySocialMedia on its launch day", "launch day", partial(measure_launch_day, bench)),
        *offline_load.steps(bench),
    ]


def measure_campaign(bench: Bench) -> None:
    """Three sides in turns: both whole ways, and `format("ottla")` on Apache Kafka."""
    brokers = {name: bench.peers.get(name) for name in (KAFKA, OTTLA)}
    sides = (
        {"side": KAFKA, "source": "kafka", "bootstrap": brokers[KAFKA].bootstrap},
        {"side": OTTLA, "source": "ottla", "bootstrap": brokers[OTTLA].bootstrap},
        {"side": SPARK_SOURCE, "source": "ottla", "bootstrap": brokers[KAFKA].bootstrap},
    )
    with _events(bench, "campaign", list(brokers.values()), bench.settings.pipeline_events) as events:
        found = _drained(bench, "campaign", events, sides, bench.settings.rounds)
        _check_same_answers([broker.bootstrap for broker in brokers.values()])
    for run in found:
        for side in {run["side"]} & {KAFKA, OTTLA}:
            bench.results.keep("campaign.events", side, run)
            bench.results.add("campaign.events", side, run["rate"])
            bench.results.add("campaign.processor", side, run["processor_us"])
        for side in {KAFKA: {CONNECTOR}, SPARK_SOURCE: {SPARK_SOURCE}}.get(run["side"], set()):
            bench.results.keep("campaign.crossed", side, run)
            bench.results.add("campaign.crossed", side, run["rate"])


def measure_alone(bench: Bench, name: str) -> None:
    """One drain in batches, after one that does not count."""
    key, broker, settings = f"pipelines.alone.{name}", bench.peers.get(OTTLA), bench.settings
    sides = ({"side": OTTLA, "source": "ottla", "bootstrap": broker.bootstrap},)
    with _events(bench, name, [broker], settings.pipeline_small_events) as events:
        (run,) = _drained(bench, name, events, sides, 1, settings.pipeline_batch_events)
    bench.results.keep(key, OTTLA, {"pipeline": name, **run})
    bench.results.add(key, OTTLA, run["rate"])


def measure_small(bench: Bench, name: str) -> None:
    """A pipeline that keeps up, in Spark as the demo starts it, but for the JVM's second compiler: it would work for
    many minutes more, on what each round leaves of the processor."""
    broker, settings = bench.peers.get(OTTLA), bench.settings
    specification = {
        "pipeline": name,
        "bootstrap": broker.bootstrap,
        "broker_process": broker.pid,
        "events": settings.pipeline_few_events,
        "warm": settings.pipeline_few_warm,
        "rounds": settings.pipeline_few_rounds,
        "settings": {**SPARK_SETTINGS, _JVM: f"{SPARK_SETTINGS[_JVM]} -XX:TieredStopAtLevel=1"},
    }
    with _topics(name, [broker]):
        found = run_job("small_batches", specification, _DRAINS_SECONDS)
    bench.results.keep(f"small.{name}", OTTLA, found)
    bench.results.add(f"small.{name}", OTTLA, found["processor_seconds"])


def keep_median(bench: Bench) -> None:
    measured = [bench.results.samples[f"small.{name}"][OTTLA] for name in PIPELINES]
    bench.results.add("small.median", OTTLA, statistics.median(map(statistics.median, measured)))


def measure_demo(bench: Bench, key: str, rate: int | None = None) -> None:
    settings = bench.settings
    specification = {
        "seconds": settings.demo_seconds,
        "settle_seconds": settings.demo_settle_seconds,
        "compile_seconds": min(60, settings.demo_seconds // 4),
        "rate": rate,
    }
    found = run_job("demo", specification, settings.demo_seconds + _DRAINS_SECONDS)
    if found["code_cache_messages"]:
        raise RefusedError("the JVM had no room left for compiled code")
    bench.results.keep(f"{key}.behind", OTTLA, {"rate": rate, **found})


def keep_worst(bench: Bench, key: str) -> None:
    """Of all runs: what is promised holds in each of them."""
    found = [run for run in bench.results.runs if run["row"] == f"{key}.behind"]
    for name, figure in (("behind", "behind_seconds"), ("processor", "processor_share"), ("memory", "memory_mb")):
        bench.results.add(f"{key}.{name}", OTTLA, max(run[figure] for run in found))


def measure_alerts(bench: Bench) -> None:
    """All alerts of a bank that is busy for a while, with Spark warm."""
    broker = bench.peers.get(OTTLA)
    with _topics("mybank", [broker]):
        found = run_job("alerts", {**_ALERTS, "bootstrap": broker.bootstrap})
    took = [took_ms / 1000 for took_ms in found["took_ms"]]
    bench.results.keep("alerts.p50", OTTLA, {"rate": _ALERTS["rate"], **found})
    bench.results.add("alerts.p50", OTTLA, statistics.median(took))
    bench.results.add("alerts.slowest", OTTLA, max(took))


def measure_launch_day(bench: Bench) -> None:
    broker = bench.peers.get(OTTLA)
    specification = {**_LAUNCH_DAY, "bootstrap": broker.bootstrap, "rate": bench.settings.launch_rate}
    with _topics("mysocialmedia", [broker]):
        found = run_job("launch_day", specification)
    bench.results.keep("pipelines.launch.peak", OTTLA, {"rate": bench.settings.launch_rate, **found})
    bench.results.add("pipelines.launch.peak", OTTLA, found["peak_lag"])
    bench.results.add("pipelines.launch.drained", OTTLA, found["drained_seconds"])


def _drained(
    bench: Bench,
    name: str,
    events: int,
    sides: tuple[dict[str, Any], ...],
    rounds: int,
    most_per_batch: int | None = None,
) -> list[Figures]:
    specification = {
        "pipeline": name,
        "events": events,
        "most_per_batch": most_per_batch,
        "sides": sides,
        "warm": bench.settings.warm_rounds,
        "rounds": rounds,
    }
    runs: list[Figures] = run_job("pipelines", specification, _DRAINS_SECONDS)["runs"]
    return runs


@contextlib.contextmanager
def _events(bench: Bench, name: str, brokers: list[ServerProcess], count: int) -> Iterator[int]:
    """The same events on all brokers; how many are in the inputs."""
    with _topics(name, brokers):
        bootstraps = [broker.bootstrap for broker in brokers]
        filled = run_job(
            "pipeline_events", {"pipeline": name, "events": count, "rate": _EVENT_RATE, "bootstraps": bootstraps}
        )
        yield int(filled["events"])


@contextlib.contextmanager
def _topics(name: str, brokers: list[ServerProcess]) -> Iterator[None]:
    """Made by whoever needs them first; gone afterwards."""
    try:
        yield
    finally:
        for broker in brokers:
            for topic in (*catalogue.pipeline(name).topics, PROGRESS):
                with contextlib.suppress(RefusedError):
                    remove_topic(broker, topic.name)


def _check_same_answers(bootstraps: list[str]) -> None:
    """Whatever was measured, the comparisons are the same on all brokers."""
    topics = [topic.name for topic in catalogue.pipeline("campaign").results]
    first, *others = [read_tables({"bootstrap.servers": bootstrap}, topics) for bootstrap in bootstraps]
    if not all(first.values()) or any(other != first for other in others):
        raise RefusedError("Campaign has other answers on one broker than on the other, or none")
