"""The pipeline `mysocialmedia`: its topics, its queries, its tables on the screen."""

from typing import TYPE_CHECKING

from ottla.pipelines.frame.pipeline import COMPACTED, Answer, Input, Pipeline, Query, Topic, ToTopic, View
from ottla.pipelines.social.events import COMMENTS, LATENESS_SECONDS, LIKES, POSTS, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.frame.reading import Streams

TOTALS, SCORES, TRENDING = "mysocialmedia.totals", "mysocialmedia.scores", "mysocialmedia.trending"
_ACTION = "post_id STRING, user_id STRING"


def _totals(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.frame.reading import once_each
    from ottla.pipelines.social import transform

    return transform.totals(once_each(streams.events()))


def _scores(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.frame.reading import once_each
    from ottla.pipelines.social import transform

    return transform.scores(once_each(streams.events(LIKES, COMMENTS)))


def _trending(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.social import transform

    return transform.trending(streams.chained(SCORES, transform.SCORES), streams.pipeline.lateness_seconds)


PIPELINE = Pipeline(
    name="mysocialmedia",
    title="Likes and comments of each post, and what is trending, through a launch-day burst",
    inputs=(
        Input(Topic(POSTS), f"{_ACTION}, text STRING"),
        Input(Topic(LIKES), _ACTION),
        Input(Topic(COMMENTS), f"{_ACTION}, text STRING"),
    ),
    results=(Topic(TOTALS, configs=COMPACTED), Topic(SCORES, configs=COMPACTED), Topic(TRENDING, configs=COMPACTED)),
    queries=(
        Query("posts", (Answer(_totals, ToTopic(TOTALS)), Answer(_scores, ToTopic(SCORES)))),
        Query("trending", (Answer(_trending, ToTopic(TRENDING)),), takes_rejects=False),
    ),
    generate=events,
    views=(
        View(
            "Trending posts",
            TRENDING,
            ("window_start", "rank", "post_id", "score"),
            sort_by="window_start",
            descending=True,
            then_by="rank",
        ),
        View("Most liked", TOTALS, ("post_id", "author", "likes", "comments"), sort_by="likes", descending=True),
    ),
    lateness_seconds=LATENESS_SECONDS,
)
