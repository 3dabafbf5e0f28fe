"""What the pipeline makes of reports: cities as streams of matches, prices and costs, and everything for the lake."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pandas
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.state import GroupStateTimeout

from ottla.pipelines.frame.reading import once_each
from ottla.pipelines.taxi.city import City, Outcome
from ottla.pipelines.taxi.city_memory import recall, remember
from ottla.pipelines.taxi.reports import Report
from ottla.pipelines.taxi.rides import Match
from ottla.pipelines.taxi.surge import Price
from ottla.pipelines.taxi.topics import COSTS, MATCHES, SURGE

RECORD = "topic STRING, key STRING, value STRING"


def dispatch(reports: DataFrame) -> DataFrame:
    """Records for three topics: who takes which ride, what a ride costs in each cell, what each ride cost.

    The state is that of a city, because drivers of one city take the rides of that city, whatever their cells are. It
    is looked at when reports come, and when the watermark passes something that waits in it.
    """
    millis = F.unix_millis("event_time").alias("millis")
    names = [F.coalesce(name, F.lit("")).alias(name) for name in ("driver_id", "user_id", "ride_id")]
    by_city = reports.select("city", "event_time", millis, "event_id", "kind", "lat", "lon", *names).groupBy("city")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        told: DataFrame = by_city.applyInPandasWithState(
            handle, RECORD, "memory BINARY", "append", GroupStateTimeout.EventTimeTimeout
        )
    return told


def for_the_lake(reports: DataFrame) -> DataFrame:
    """Every report once, by date: where drivers were before and during each ride, and all else that makes its cost."""
    columns = ("event_id", "event_time", "kind", "city", "driver_id", "user_id", "ride_id", "lat", "lon")
    return once_each(reports).select(*columns, F.to_date("event_time").alias("date"))


def handle(key: tuple[str], reports: Iterable[pandas.DataFrame], state: Any) -> Iterator[pandas.DataFrame]:
    """One city in one batch: new reports wait, and what lies before the watermark is handled."""
    (name,) = key
    city = recall(state.get[0]) if state.exists else City()
    for some in reports:
        for row in some[["millis", *Report._fields[1:]]].itertuples(index=False, name=None):
            city.report(Report(*row))
    records = [record(name, outcome) for outcome in city.advance(state.getCurrentWatermarkMs())]
    state.update((remember(city),))
    if (due := city.next_due()) is not None:
        state.setTimeoutTimestamp(due)
    yield pandas.DataFrame(records, columns=["topic", "key", "value"])


def record(city: str, outcome: Outcome) -> tuple[str, str, str]:
    """Topic, key and value of an outcome."""
    value = json.dumps({"city": city, **outcome._asdict()}, separators=(",", ":"))
    if isinstance(outcome, Price):
        return SURGE, f"{city}|{outcome.cell}", value
    return MATCHES if isinstance(outcome, Match) else COSTS, outcome.ride_id, value
