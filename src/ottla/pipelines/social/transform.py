"""From posts, likes and comments to totals, scores and the ranks of what is trending."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.frame.writing import json_value
from ottla.pipelines.social.events import COMMENTS, LIKES, POSTS
from ottla.pipelines.social.ranking import COMMENT_SCORE, RANKS, STATE, best_of_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW, SLIDE = "5 minutes", "1 minute"
WINDOW_SECONDS = 300
SCORES = "window_start BIGINT, window_end BIGINT, post_id STRING, score BIGINT"


def totals(events: "DataFrame") -> "DataFrame":
    """Likes and comments of each post, as a table by post. What is liked before its post has come has no author yet."""
    is_post = F.col("topic") == POSTS
    counts = events.groupBy("post_id").agg(
        F.max(F.when(is_post, F.col("user_id"))).alias("author"),
        F.max(F.when(is_post, F.col("text"))).alias("text"),
        F.max(F.when(is_post, F.unix_millis("event_time"))).alias("posted_at"),
        _likes().alias("likes"),
        _comments().alias("comments"),
    )
    return counts.select(F.col("post_id").alias("key"), json_value("*"))


def scores(events: "DataFrame") -> "DataFrame":
    """What each post earned in each window, as a table by window and post."""
    active = events.where(F.col("topic") != POSTS)
    counts = active.groupBy(F.window("event_time", WINDOW, SLIDE), "post_id").agg(
        (_likes() + COMMENT_SCORE * _comments()).alias("score")
    )
    rows = counts.select(
        F.unix_millis("window.start").alias("window_start"),
        F.unix_millis("window.end").alias("window_end"),
        "post_id",
        "score",
    )
    return rows.select(F.concat_ws("|", "window_start", "post_id").alias("key"), json_value("*"))


def trending(changed_scores: "DataFrame", lateness_seconds: int) -> "DataFrame":
    """The best posts of each window, as a table by window and rank. A window is forgotten when no score of it can
    change any more: the newest event is followed by windows that end up to a window's length after it, so the watermark
    waits for that and for what that of events waits for."""
    timed = changed_scores.withColumn("window_time", F.timestamp_millis("window_end")).withWatermark(
        "window_time", f"{2 * lateness_seconds + WINDOW_SECONDS} seconds"
    )
    ranked = timed.groupBy("window_start").applyInPandasWithState(
        best_of_window, RANKS, STATE, outputMode="update", timeoutConf="EventTimeTimeout"
    )
    return ranked.select(F.concat_ws("|", "window_start", "rank").alias("key"), json_value("*"))


def _likes() -> Column:
    return F.count_if(F.col("topic") == LIKES)


def _comments() -> Column:
    return F.count_if(F.col("topic") == COMMENTS)
