"""The launch day of MySocialMedia at its own pace: fifty times as many events for a while.

They are made before anything is sent, so that making them takes nothing from Spark while it is measured. Says `ready`,
begins when it gets a line, and ends when its input does.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from bench.job import Specification
from bench.jobs.pipeline_events import LINGER_MS, SEED, START_MS
from ottla import Producer
from ottla.pipelines.frame.generating import Event
from ottla.pipelines.social import events as social

_TICK_SECONDS = 0.02


def launch_day(specification: Specification) -> tuple[int, list[Event]]:
    """When it begins, and its events: `before_seconds` of a usual day first, at most `after_seconds` last."""
    burst_ms = START_MS + social.BURST_AFTER_SECONDS * 1000
    begin_ms = burst_ms - int(specification["before_seconds"] * 1000)
    end_ms = burst_ms + int((social.BURST_SECONDS + specification["after_seconds"]) * 1000)
    day: list[Event] = []
    for event in social.events(SEED, START_MS, specification["rate"]):
        if event.timestamp_ms >= end_ms:
            break
        if event.timestamp_ms >= begin_ms:
            day.append(event)
    return begin_ms, day


def send(bootstrap: str, begin_ms: int, day: list[Event], stop: threading.Event) -> None:
    """Each when its time has come; what the machine was too busy for, at once."""
    sent, started = 0, time.monotonic()
    with Producer[bytes, bytes](bootstrap, linger_ms=LINGER_MS) as producer:
        while sent < len(day) and not stop.wait(_TICK_SECONDS):
            now_ms = begin_ms + (time.monotonic() - started) * 1000
            while sent < len(day) and day[sent].timestamp_ms <= now_ms:
                event = day[sent]
                producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
                sent += 1


def main() -> None:
    specification = json.loads(sys.stdin.readline())
    begin_ms, day = launch_day(specification)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    stop = threading.Event()

    def stop_at_the_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=stop_at_the_end, daemon=True).start()
    send(specification["bootstrap"], begin_ms, day, stop)


if __name__ == "__main__":
    main()
