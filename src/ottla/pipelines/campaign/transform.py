"""From views, clicks and purchases to campaigns compared."""

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines.campaign.events import CLICKS, PURCHASES, VIEWS
from ottla.pipelines.campaign.statistics import compare
from ottla.pipelines.frame.writing import json_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = "5 minutes"
CONFIDENT_P = 0.05
_COMPARISON = "difference DOUBLE, low DOUBLE, high DOUBLE, p_value DOUBLE"
_KINDS = {"views": VIEWS, "clicks": CLICKS, "purchases": PURCHASES}


def of_campaigns(events: "DataFrame", campaigns: "DataFrame") -> "DataFrame":
    """Each event with the experiment and the arm that its campaign stands for; events of no known campaign are left
    out. There are few campaigns: they go to the events, not the other way round.

    Joined with no campaign at all, events would not even be looked at, and what comes before the join could not keep
    its state. So there is always one, which no event is of."""
    known = campaigns.select(F.col("key").alias("campaign_id"), "experiment", "arm")
    none = campaigns.sparkSession.range(1).select(
        F.lit(f"none {uuid4().hex}").alias("campaign_id"), F.lit("none").alias("experiment"), F.lit("none").alias("arm")
    )
    return events.join(F.broadcast(known.unionAll(none)), "campaign_id")


def counted(events: "DataFrame") -> "DataFrame":
    """By window and experiment: what was seen, clicked and bought of A and of B."""
    counts = [
        F.count_if((F.col("topic") == topic) & (F.col("arm") == arm)).alias(f"{kind}_{arm.lower()}")
        for arm in "AB"
        for kind, topic in _KINDS.items()
    ]
    revenues = [
        F.sum(F.when(F.col("arm") == arm, F.coalesce("amount_cents", F.lit(0))).otherwise(0)).alias(
            f"revenue_cents_{arm.lower()}"
        )
        for arm in "AB"
    ]
    return events.groupBy(F.window("event_time", WINDOW), "experiment").agg(*counts, *revenues)


def compared(counts: "DataFrame", lateness_seconds: int) -> "DataFrame":
    """The difference of B and A with its confidence, as records of a table by experiment and window."""
    comparison = _compare("views_a", "purchases_a", "views_b", "purchases_b")
    rows = (
        counts.select(
            "experiment",
            F.unix_millis("window.start").alias("window_start"),
            F.unix_millis("window.end").alias("window_end"),
            (F.unix_millis("window.end") + lateness_seconds * 1000).alias("final_at"),
            *(column for column in counts.columns if column not in ("window", "experiment")),
            # A window may begin with a purchase, before anything is viewed.
            F.try_divide("purchases_a", "views_a").alias("conversion_a"),
            F.try_divide("purchases_b", "views_b").alias("conversion_b"),
            comparison.alias("comparison"),
        )
        .select("*", "comparison.*", _better().alias("better"))
        .drop("comparison")
    )
    return rows.select(F.concat_ws("|", "experiment", "window_start").alias("key"), json_value("*"))


def _compare(*columns: str) -> Column:
    # A lambda has no annotations: Spark would look for pandas in them.
    return F.udf(lambda *counts: compare(*counts), _COMPARISON)(*columns)


def _better() -> Column:
    """The campaign that is better as far as one can tell, or null."""
    found = F.col("comparison")
    return F.when(found.p_value < CONFIDENT_P, F.when(found.difference > 0, F.lit("B")).otherwise(F.lit("A")))
