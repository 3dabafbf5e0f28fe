"""The pipeline `movieflix`: its topics, its queries, its tables on the screen."""

from typing import TYPE_CHECKING

from ottla.pipelines.frame.pipeline import (
    COMPACTED,
    Answer,
    Input,
    Pipeline,
    Query,
    Rule,
    Table,
    ToLake,
    Topic,
    ToTopic,
    View,
)
from ottla.pipelines.movieflix.events import LATENESS_SECONDS, generate
from ottla.pipelines.movieflix.topics import CATALOGUE, NEXT_SHOWS, POSITIONS, PROFILES, VIEWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.frame.reading import Streams

# The sum of as many as there can be is a number that fits; one that does not would end the query.
_MOST_SECONDS = 1_000_000_000
_SHOW = "show_id STRING, title STRING, genres ARRAY<STRING>, rank INT, available_from BIGINT"


def _positions(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.movieflix import transform

    return transform.resume(streams.events())


def _tastes(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.movieflix import transform

    return transform.profiles_and_next_shows(streams.events(), streams.table(CATALOGUE))


def _views(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.movieflix import transform

    return transform.for_the_lake(streams.events())


PIPELINE = Pipeline(
    name="movieflix",
    title="Where to go on watching, who likes what, and what to watch next",
    inputs=(
        Input(
            Topic(VIEWS),
            "user_id STRING, show_id STRING, position_s BIGINT, watched_s BIGINT, finished BOOLEAN",
            rules=(
                Rule("position_s >= 0", "position_s is below 0"),
                Rule(f"watched_s BETWEEN 0 AND {_MOST_SECONDS}", f"watched_s is not between 0 and {_MOST_SECONDS}"),
            ),
        ),
    ),
    tables=(
        Table(
            Topic(CATALOGUE, 1, COMPACTED),
            _SHOW,
            # A show has one row: that of the record with its id.
            rules=(Rule("show_id = CAST(key AS STRING)", "show_id is not the record's key"),),
        ),
    ),
    results=tuple(Topic(name, configs=COMPACTED) for name in (POSITIONS, PROFILES, NEXT_SHOWS)),
    queries=(
        Query(
            "viewers",
            (
                Answer(_positions, ToTopic(POSITIONS)),
                Answer(_tastes, ToTopic()),
                Answer(_views, ToLake("views", partition_by=("date",))),
            ),
        ),
    ),
    generate=generate,
    views=(
        View(
            "Resume",
            POSITIONS,
            ("user_id", "show_id", "position_s", "finished", "event_time"),
            sort_by="event_time",
            descending=True,
        ),
        View("Profiles", PROFILES, ("user_id", "favourites", "minutes"), sort_by="as_of", descending=True),
        View("Next", NEXT_SHOWS, ("user_id", "title", "score"), sort_by="as_of", descending=True),
    ),
    lateness_seconds=LATENESS_SECONDS,
)
