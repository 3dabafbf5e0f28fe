"""The pipeline `mybank`: its topics, its queries, its tables on the screen."""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.pipelines.bank.events import CHANGES, LATENESS_SECONDS, events
from ottla.pipelines.frame.pipeline import (
    COMPACTED,
    URGENT,
    Answer,
    Input,
    Pipeline,
    Query,
    Rule,
    ToLake,
    Topic,
    ToTopic,
    View,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.bank.events import Write
    from ottla.pipelines.frame.place import Place
    from ottla.pipelines.frame.reading import Streams

ALERTS, LIMITS = "mybank.alerts", "mybank.limits"
_ROW = "STRUCT<id BIGINT, account STRING, event_id STRING, amount_cents BIGINT, event_time BIGINT, limit_cents BIGINT>"
_CHANGE = (
    f"table STRING, op STRING, before {_ROW}, after {_ROW},"
    " incarnation BIGINT, position BIGINT, sequence BIGINT, commit_time BIGINT"
)


def _told(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.bank import transform

    return transform.told(transform.steps(streams.events()), ALERTS, LIMITS)


def _history(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.bank import transform
    from ottla.pipelines.frame.reading import once_each

    return transform.history(once_each(streams.events()))


def _run_bank(place: "Place", stop: threading.Event, seed: int, start_ms: int, rate: float) -> "Iterator[Write]":
    from ottla.pipelines.bank.feeding import run_bank

    return run_bank(place, stop, seed, start_ms, rate)


PIPELINE = Pipeline(
    name="mybank",
    title="One alert for each large transaction, by limits that people change as they like",
    inputs=(
        Input(
            Topic(CHANGES),
            _CHANGE,
            optional=frozenset({"before", "after", "incarnation"}),
            rules=(
                Rule("`table` IN ('transactions', 'thresholds')", "table is neither transactions nor thresholds"),
                Rule(
                    "op IN ('snapshot', 'insert', 'update', 'delete')", "op is none of snapshot, insert, update, delete"
                ),
                Rule("if(op = 'delete', before.account, after.account) IS NOT NULL", "account is missing"),
                Rule(
                    "op = 'delete' OR `table` <> 'transactions' OR after.amount_cents > 0",
                    "amount_cents is missing or not above 0",
                ),
                Rule(
                    "op = 'delete' OR `table` <> 'transactions' OR after.event_id IS NOT NULL",
                    "the transaction has no event_id",
                ),
                Rule(
                    "op = 'delete' OR `table` <> 'thresholds' OR after.limit_cents >= 0",
                    "limit_cents is missing or below 0",
                ),
            ),
        ),
    ),
    results=(Topic(ALERTS), Topic(LIMITS, configs=COMPACTED)),
    queries=(
        Query(
            "alerts",
            (Answer(_told, ToTopic()), Answer(_history, ToLake("transactions", ("date",)))),
            mode="append",
            every=URGENT,
        ),
    ),
    generate=events,
    feed=_run_bank,
    views=(
        View(
            "Alerts: the last of each account",
            ALERTS,
            ("account", "amount_cents", "limit_cents", "event_time"),
            sort_by="commit_time",
            descending=True,
        ),
        View(
            "Limits that people have set", LIMITS, ("account", "limit_cents", "since"), sort_by="since", descending=True
        ),
    ),
    lateness_seconds=LATENESS_SECONDS,
)
