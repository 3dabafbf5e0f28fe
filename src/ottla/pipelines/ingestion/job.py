"""The pipeline `ingestion`: every topic into the lake, as it is."""

from typing import TYPE_CHECKING

from ottla.pipelines.frame.pipeline import UNHURRIED, BatchQuery, Input, Pipeline, Topic
from ottla.pipelines.ingestion.events import LATENESS_SECONDS, VISITS, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.frame.place import Place
    from ottla.pipelines.frame.reading import Streams

# All but those of brokers and clients, which begin with an underscore.
TOPICS = "^[^_]"


def lake_directory(place: "Place") -> str:
    return place.lake("ingestion", "records")


def _ingest(batch: "DataFrame", place: "Place") -> None:
    from ottla.pipelines.ingestion.lake import Lake
    from ottla.pipelines.ingestion.streaming import ingest

    ingest(batch, Lake(lake_directory(place)), place.brokers)


def _records(streams: "Streams", pattern: str) -> "DataFrame":
    """A place that no lake can be at is said before the query starts."""
    from ottla.pipelines.ingestion.lake import Lake

    Lake(lake_directory(streams.place))
    return streams.everything(pattern)


def ingestion_of(pattern: str) -> Pipeline:
    """Of the topics in whose names the pattern is found."""
    return Pipeline(
        name="ingestion",
        title="Every topic in the lake: Parquet by topic, date and hour, each record once, small files put together",
        inputs=(Input(Topic(VISITS), "user_id STRING, page STRING"),),
        results=(),
        queries=(BatchQuery("lake", lambda streams: _records(streams, pattern), _ingest, every=UNHURRIED),),
        generate=events,
        lateness_seconds=LATENESS_SECONDS,
    )


PIPELINE = ingestion_of(TOPICS)
