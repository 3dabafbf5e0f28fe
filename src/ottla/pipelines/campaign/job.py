"""The pipeline `campaign`: its topics, its query, its table on the screen."""

from typing import TYPE_CHECKING

from ottla.pipelines.campaign.events import CAMPAIGNS, CLICKS, LATENESS_SECONDS, PURCHASES, VIEWS, events
from ottla.pipelines.frame.pipeline import COMPACTED, Answer, Input, Pipeline, Query, Rule, Table, Topic, ToTopic, View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.frame.reading import Streams

COMPARISONS = "campaign.comparisons"
_VISIT = "campaign_id STRING, user_id STRING"
# The sum of as many as there can be is a number that fits; one that does not would end the query.
_MOST_CENTS = 100_000_000_000


def _comparisons(streams: "Streams") -> "DataFrame":
    from ottla.pipelines.campaign import transform
    from ottla.pipelines.frame.reading import once_each

    campaigns = streams.table(CAMPAIGNS)
    visits = transform.of_campaigns(once_each(streams.events()), campaigns)
    return transform.compared(transform.counted(visits), streams.pipeline.lateness_seconds)


PIPELINE = Pipeline(
    name="campaign",
    title="Campaigns compared, with the difference and its confidence, as it goes",
    inputs=(
        Input(Topic(VIEWS), _VISIT),
        Input(Topic(CLICKS), _VISIT),
        Input(
            Topic(PURCHASES),
            f"{_VISIT}, amount_cents BIGINT",
            rules=(
                Rule(f"amount_cents BETWEEN 1 AND {_MOST_CENTS}", f"amount_cents is not between 1 and {_MOST_CENTS}"),
            ),
        ),
    ),
    tables=(
        Table(
            Topic(CAMPAIGNS, 1, COMPACTED),
            "experiment STRING, arm STRING",
            rules=(Rule("arm IN ('A', 'B')", "arm is neither A nor B"),),
        ),
    ),
    results=(Topic(COMPARISONS, configs=COMPACTED),),
    queries=(Query("comparisons", (Answer(_comparisons, ToTopic(COMPARISONS)),)),),
    generate=events,
    views=(
        View(
            "Campaigns: B against A",
            COMPARISONS,
            (
                "experiment",
                "window_start",
                "conversion_a",
                "conversion_b",
                "difference",
                "low",
                "high",
                "p_value",
                "better",
            ),
            sort_by="window_start",
            descending=True,
        ),
    ),
    lateness_seconds=LATENESS_SECONDS,
)
