"""Which records count. A record is accepted, malformed or late, and the record alone says which.

| verdict   | because                                                                                             |
|-----------|-----------------------------------------------------------------------------------------------------|
| malformed | no JSON object; a required field missing or of another type; a rule not fulfilled; from the future  |
| late      | it was sent more than `lateness` after it happened                                                  |
| accepted  | none of these                                                                                       |

Nothing else is looked at: no state, no other record, no clock. So a record is judged the same way whichever
micro-batch it comes in, by whichever query, and after any crash. Queries take what is accepted; one query, `rejects`,
takes all the rest.
"""

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from ottla.pipelines.frame.pipeline import Input, Pipeline
from ottla.pipelines.frame.schemas import fields_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FUTURE_SECONDS = 60
LATE = "late"

VERDICT = "verdict"


def verdict(pipeline: Pipeline, inputs: tuple[Input, ...]) -> Column:
    """Null for what is accepted, `late`, or what is wrong. Takes the columns of `Streams.raw`."""
    by_topic = [F.when(F.col("topic") == one.topic.name, _verdict_of(one, pipeline.lateness_seconds)) for one in inputs]
    return F.coalesce(*by_topic)


def _verdict_of(one: Input, lateness_seconds: int) -> Column:
    sent_ms = F.unix_millis("timestamp")
    fields = fields_of(one)
    required = [field for field in fields.fields if field.name not in one.optional]
    is_empty = reduce(lambda left, right: left & right, (F.col(field.name).isNull() for field in fields.fields))
    faults = [F.when(is_empty, F.lit("the value is no JSON object with any of the fields"))]
    for field in required:
        text = f"{field.name} is missing, or no {field.dataType.simpleString()}"
        faults.append(F.when(F.col(field.name).isNull(), F.lit(text)))
    faults += [F.when(~F.coalesce(F.expr(rule.condition), F.lit(False)), F.lit(rule.otherwise)) for rule in one.rules]
    # Clocks may be fast by the lateness at most: the watermark waits for both, the fastest event and the latest.
    ahead_ms = min(FUTURE_SECONDS, lateness_seconds) * 1000
    faults.append(F.when(F.col("event_time") > sent_ms + ahead_ms, F.lit("event_time is after it was sent")))
    faults.append(F.when(F.col("event_time") < sent_ms - lateness_seconds * 1000, F.lit(LATE)))
    return F.coalesce(*faults)


def rejected(raw: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """From all records to those that do not count, as letters: where each was, what it was, and what is wrong."""
    judged = raw.withColumn(VERDICT, verdict(pipeline, pipeline.inputs)).where(F.col(VERDICT).isNotNull())
    letter = F.struct(
        F.col("topic"),
        F.col("partition"),
        F.col("offset"),
        F.unix_millis("timestamp").alias("timestamp"),
        F.col("key").cast("string").alias("key"),
        F.col("value").cast("string").alias("value"),
        F.col(VERDICT).alias("reason"),
    )
    place = F.when(F.col(VERDICT) == LATE, F.lit(pipeline.late.name)).otherwise(F.lit(pipeline.dead_letters.name))
    return judged.select(
        place.alias("topic"), F.col("key").cast("string").alias("key"), F.to_json(letter).alias("value")
    )
