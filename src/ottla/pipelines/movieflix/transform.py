"""What the pipeline makes of views: where to resume, a profile of each user with the next show, rows for the lake."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ottla.pipelines.frame.reading import once_each
from ottla.pipelines.frame.writing import json_value
from ottla.pipelines.movieflix.catalogue import GENRES
from ottla.pipelines.movieflix.topics import NEXT_SHOWS, PROFILES

MINUTES = "transform_values(seconds, (genre, watched) -> watched div 60)"

FAVOURITES = """
    transform(
        slice(array_sort(transform(
            filter(map_entries(seconds), entry -> entry.value > 0),
            entry -> struct(-entry.value AS place, entry.key AS genre))), 1, 3),
        entry -> entry.genre)
"""

BEST = """
    array_max(transform(
        filter(shows, show -> show.available_from <= as_of AND NOT array_contains(begun, show.show_id)),
        show -> struct(
            aggregate(show.genres, 0L, (sum, genre) -> sum + coalesce(try_element_at(seconds, genre), 0L))
                div greatest(size(show.genres), 1) AS score,
            -CAST(show.rank AS BIGINT) AS place,
            show.show_id AS show_id,
            show.title AS title)))
"""


def resume(views: DataFrame) -> DataFrame:
    """Where each user left off each show: what the view with the greatest event time says, of equals the one with the
    greatest id. A view that comes twice, or after a newer one, changes nothing."""
    latest = F.max_by(F.struct("position_s", "finished", "event_time"), F.struct("event_time", "event_id"))
    found = views.groupBy("user_id", "show_id").agg(latest.alias("latest"))
    fields = ["user_id", "show_id", "latest.position_s", "latest.finished"]
    key = F.concat_ws("|", "user_id", "show_id")
    return found.select(key.alias("key"), json_value(*fields, F.unix_millis("latest.event_time").alias("event_time")))


def profiles_and_next_shows(views: DataFrame, catalogue: DataFrame) -> DataFrame:
    """Records for two topics: the profile of each user who watched something, and what to watch next."""
    shows = in_one_row(catalogue)
    advised = next_shows(profiles(views, shows), shows)
    profile = json_value("user_id", "as_of", "minutes", "favourites", "finished")
    advice = json_value("user_id", "as_of", "next.show_id", "next.title", "next.score")
    records = F.array(
        F.struct(F.lit(PROFILES).alias("topic"), profile), F.struct(F.lit(NEXT_SHOWS).alias("topic"), advice)
    )
    return advised.select("user_id", F.explode(records).alias("record")).selectExpr(
        "record.topic", "user_id AS key", "record.value"
    )


def in_one_row(catalogue: DataFrame) -> DataFrame:
    """All shows as one array, and the genres of each by its id: joined to a stream, it is sent to executors once."""
    show = F.struct("show_id", "title", "genres", "rank", "available_from")
    genres = F.map_from_entries(F.collect_list(F.struct("show_id", "genres")))
    return catalogue.agg(F.collect_list(show).alias("shows"), genres.alias("genres_of"))


def profiles(views: DataFrame, shows: DataFrame) -> DataFrame:
    """What each user has watched: seconds of each genre, favourites, shows begun and finished."""
    sums = [F.sum(F.when(F.array_contains("genres", genre), F.col("watched_s")).otherwise(0)) for genre in GENRES]
    watched = (
        once_each(views)
        .crossJoin(F.broadcast(shows))
        .withColumn("genres", F.coalesce(F.try_element_at("genres_of", "show_id"), F.array()))
        .groupBy("user_id")
        .agg(
            F.array(*sums).alias("sums"),
            F.collect_set("show_id").alias("begun"),
            F.sort_array(F.collect_set(F.when(F.col("finished"), F.col("show_id")))).alias("finished"),
            F.unix_millis(F.max("event_time")).alias("as_of"),
        )
    )
    seconds = F.map_from_arrays(F.array(*map(F.lit, GENRES)), "sums")
    return watched.withColumn("seconds", seconds).withColumns(
        {"minutes": F.expr(MINUTES), "favourites": F.expr(FAVOURITES)}
    )


def next_shows(profiles: DataFrame, shows: DataFrame) -> DataFrame:
    """With the show that fits each profile best: of those that can be watched as of the profile's time and that the
    user has not begun, that with the highest score, of equals that with the lowest rank.

    A show's score is what the user has watched of its genres, in seconds, on average.
    """
    return profiles.crossJoin(F.broadcast(shows)).withColumn("next", F.expr(BEST))


def for_the_lake(views: DataFrame) -> DataFrame:
    """Every view once, by date."""
    columns = ("event_id", "event_time", "user_id", "show_id", "position_s", "watched_s", "finished")
    return once_each(views).select(*columns, F.to_date("event_time").alias("date"))
