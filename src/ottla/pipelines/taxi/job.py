"""The pipeline `gettaxi`: its topics, its queries, its tables on the screen."""

from typing import TYPE_CHECKING

from ottla.pipelines.frame.pipeline import COMPACTED, Answer, Input, Pipeline, Query, Rule, ToLake, Topic, ToTopic, View
from ottla.pipelines.taxi.events import LATENESS_SECONDS, generate
from ottla.pipelines.taxi.topics import COSTS, MATCHES, REPORTS, SURGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.frame.reading import Streams

_RULES = (
    Rule("kind IN ('position', 'pickup', 'dropoff', 'request')", "kind is not position, pickup, dropoff or request"),
    Rule("kind = 'request' OR driver_id <> ''", "a driver's report has no driver_id"),
    Rule("kind <> 'request' OR user_id <> ''", "a request has no user_id"),
    Rule("kind = 'position' OR ride_id <> ''", "a request, pickup or dropoff has no ride_id"),
    Rule("lat BETWEEN -90 AND 90", "lat is not between -90 and 90"),
    Rule("lon BETWEEN -180 AND 180", "lon is not between -180 and 180"),
)


def _dispatch(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.taxi import transform

    return transform.dispatch(streams.events())


def _reports(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.taxi import transform

    return transform.for_the_lake(streams.events())


PIPELINE = Pipeline(
    name="gettaxi",
    title="A close driver for each user, surge prices, and what each ride costs",
    inputs=(
        Input(
            # One partition: however batches are cut, the watermark never passes a report that is still to be read.
            Topic(REPORTS, partitions=1),
            "city STRING, kind STRING, lat DOUBLE, lon DOUBLE, driver_id STRING, user_id STRING, ride_id STRING",
            optional=frozenset({"driver_id", "user_id", "ride_id"}),
            rules=_RULES,
        ),
    ),
    results=(Topic(MATCHES, configs=COMPACTED), Topic(SURGE, configs=COMPACTED), Topic(COSTS, configs=COMPACTED)),
    queries=(
        Query(
            "dispatch",
            (Answer(_dispatch, ToTopic()), Answer(_reports, ToLake("reports", partition_by=("date",)))),
            mode="append",
            waits_for_time=True,
        ),
    ),
    generate=generate,
    views=(
        View(
            "Surge by cell", SURGE, ("city", "cell", "percent", "demand", "supply"), sort_by="percent", descending=True
        ),
        View(
            "Matches",
            MATCHES,
            ("ride_id", "driver_id", "distance_m", "surge_percent", "decided_at"),
            sort_by="decided_at",
            descending=True,
        ),
        View(
            "Costs",
            COSTS,
            ("ride_id", "distance_m", "duration_s", "surge_percent", "cost_cents", "dropped_off_at"),
            sort_by="dropped_off_at",
            descending=True,
        ),
    ),
    lateness_seconds=LATENESS_SECONDS,
)
