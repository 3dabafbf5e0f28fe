"""Where a pipeline begins when its checkpoints were put aside: at the offsets that it has published, or anew.

Published offsets are those of consumer groups, one for each query, named after it. Where several queries have read a
partition, the one that was furthest behind counts: nothing is left out, and what others had taken is taken again.
"""

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.sync.admin import Admin
from ottla.pipelines.frame.checkpoints import Checkpoint
from ottla.pipelines.frame.pipeline import Pipeline
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.telling import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EARLIEST = -2


class NothingPublished(PipelineError):
    """There are no offsets to go on from."""


def put_aside(spark: "SparkSession", pipeline: Pipeline, place: Place) -> str | None:
    """Its checkpoints, under another name beside where they were; that name, or None where there are none. Where it is
    to go on from published offsets, and there are none, NothingPublished; the checkpoints stay then."""
    if place.begin == "published":
        starting_offsets(pipeline, place, [one.name for one in pipeline.topics])
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Checkpoint(spark, place.checkpoint(pipeline.name, "")).move_to(f"{pipeline.name}.before-{stamp}")


def starting_offsets(pipeline: Pipeline, place: Place, topics: list[str]) -> str:
    """The option of that name, for a query that reads these topics."""
    if place.begin != "published":
        return "earliest"
    with Admin(config=place.brokers) as admin:
        groups = [one.group_id for one in admin.list_groups() if one.group_id.startswith(f"{pipeline.name}-")]
        published = admin.list_group_offsets(groups).succeeded.values() if groups else ()
        described = admin.describe_topics(topics).raise_for_errors()
        partitions = {name: [one.partition for one in topic.partitions] for name, topic in described.items()}
    furthest_behind: dict[tuple[str, int], int] = {}
    for offsets in published:
        for one, found in offsets.items():
            if found is not None and one.topic in partitions:
                place_of = (one.topic, one.partition)
                furthest_behind[place_of] = min(found.offset, furthest_behind.get(place_of, found.offset))
    if not furthest_behind:
        raise NothingPublished(
            f"no offsets of {pipeline.name} were published for {', '.join(topics)}: begin anew, with --begin anew"
        )
    return _as_option(partitions, furthest_behind)


def _as_option(partitions: Mapping[str, list[int]], offsets: Mapping[tuple[str, int], int]) -> str:
    return json.dumps(
        {
            topic: {str(number): offsets.get((topic, number), _EARLIEST) for number in numbers}
            for topic, numbers in partitions.items()
        }
    )
