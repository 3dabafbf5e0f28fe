"""Kafka's own ProducerPerformance: the Java client on both brokers, 100 B records, acks=1."""

from __future__ import annotations

import re
import subprocess
from functools import partial

from tests.peers.paths import KAFKA_LIBS, require_libs

from bench.batches import RECORD_BYTES
from bench.peers import connect, fresh_topic
from bench.plan import Bench, Step, round_text
from bench.wire import RefusedError, end_offset

_TIMEOUT_SECONDS = 180
_RATE = re.compile(r"([\d.]+) records/sec")
_KEY = "java.produce"


def steps(bench: Bench) -> list[Step]:
    planned = []
    for number, counted in bench.rounds():
        if not counted:
            continue
        for name in bench.peers.names:
            title = f"{name}: ProducerPerformance, {round_text(number, counted, bench.settings.rounds)}"
            planned.append(Step(title, f"ProducerPerformance on {name}", partial(measure, bench, name, number)))
    return planned


def measure(bench: Bench, name: str, number: int) -> None:
    """The tool's last summary counts; the end of the log has to be what it says it sent."""
    broker, records = bench.peers.get(name), bench.settings.java_records
    topic = f"java-{number}"
    command = ["java", "-Xmx512m", "-cp", f"{require_libs(KAFKA_LIBS, 'kafka')}/*"]
    command += ["org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--throughput", "-1"]
    command += ["--num-records", str(records), "--record-size", str(RECORD_BYTES)]
    command += ["--bootstrap-server", broker.bootstrap]
    command += ["--command-property", "acks=1", "enable.idempotence=false"]
    with fresh_topic(broker, topic):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS)
        rates = _RATE.findall(done.stdout)
        if done.returncode != 0 or not rates:
            raise RefusedError(
                f"ProducerPerformance ended with code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
            )
        with connect(broker) as connection:
            end = end_offset(connection, topic, 0)
        if end != records:
            raise RefusedError(f"ProducerPerformance sent {records} records, the log ends at {end}")
    bench.results.keep(_KEY, name, {"records_per_second": float(rates[-1])})
    bench.results.add(_KEY, name, float(rates[-1]))
