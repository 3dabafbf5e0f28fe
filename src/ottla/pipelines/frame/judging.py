"""Which records count. A record is accepted, malformed or late, and the record alone says which.

| verdict   | because                                                                                             |
|-----------|-----------------------------------------------------------------------------------------------------|
| malformed | no JSON object; a required field missing or of another type; a rule not fulfilled; from the future  |
| late      | it was sent more than `lateness` after it happened                                                  |
| accepted  | none of these                                                                                       |

A record of a table is accepted or malformed: it has a key, and its value is a row, or null, which takes the row away.

Nothing else is looked at: no state, no other record, no clock. So a record is judged the same way whichever
micro-batch it comes in, by whichever query, and after any crash. Answers are made of what is accepted; all the rest
becomes letters, in the same pass.
"""

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from ottla.pipelines.frame.pipeline import DEAD_LETTERS, JUDGED, LATE_EVENTS, RECORDS, Pipeline, Source, Table
from ottla.pipelines.frame.schemas import fields_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FUTURE_SECONDS = 60
LATE = "late"

VERDICT = "verdict"

# A character is up to six bytes of JSON, so a letter stays well below the megabyte that brokers and producers take.
MOST_VALUE_CHARACTERS = 100_000
MOST_KEY_CHARACTERS = 1_000
MOST_KEY_BYTES = 100_000


def verdict(pipeline: Pipeline, sources: tuple[Source, ...]) -> Column:
    """Null for what is accepted, `late`, or what is wrong. Takes the columns of `Streams.raw`."""
    return F.coalesce(*(F.when(F.col("topic") == one.topic.name, _verdict_of(one, pipeline)) for one in sources))


def row_verdict(table: Table) -> Column:
    """Null for a row, and for what takes one away; else what is wrong. Takes the columns of `Streams.raw`."""
    keyless = F.when(F.col("key").isNull(), F.lit("the record has no key"))
    return F.coalesce(keyless, F.when(F.col("value").isNotNull(), F.coalesce(*_faults(table))))


def _verdict_of(one: Source, pipeline: Pipeline) -> Column:
    if isinstance(one, Table):
        return row_verdict(one)
    sent_ms = F.unix_millis("timestamp")
    lateness_seconds = pipeline.lateness_seconds
    # Clocks may be fast by the lateness at most: the watermark waits for both, the fastest event and the latest.
    ahead_ms = min(FUTURE_SECONDS, lateness_seconds) * 1000
    return F.coalesce(
        *_faults(one),
        F.when(F.col("event_time") > sent_ms + ahead_ms, F.lit("event_time is after it was sent")),
        F.when(F.col("event_time") < sent_ms - lateness_seconds * 1000, F.lit(LATE)),
    )


def _faults(one: Source) -> list[Column]:
    """What is wrong with a value, each null where it is not."""
    fields = fields_of(one)
    required = [field for field in fields.fields if field.name not in one.optional]
    is_empty = reduce(lambda left, right: left & right, (F.col(field.name).isNull() for field in fields.fields))
    faults = [F.when(is_empty, F.lit("the value is no JSON object with any of the fields"))]
    for field in required:
        text = f"{field.name} is missing, or no {field.dataType.simpleString()}"
        faults.append(F.when(F.col(field.name).isNull(), F.lit(text)))
    faults += [F.when(~F.coalesce(F.expr(rule.condition), F.lit(False)), F.lit(rule.otherwise)) for rule in one.rules]
    return faults


def judged(raw: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """All records with their verdict, counted: the progress of a query tells how many there were of each kind."""
    is_late = F.col(VERDICT) == LATE
    return raw.withColumn(VERDICT, verdict(pipeline, (*pipeline.inputs, *pipeline.tables))).observe(
        JUDGED,
        F.count(F.lit(1)).alias(RECORDS),
        F.count_if(F.col(VERDICT).isNotNull() & ~is_late).alias(DEAD_LETTERS),
        F.count_if(is_late).alias(LATE_EVENTS),
    )


def letters(judged: "DataFrame", pipeline: Pipeline) -> "DataFrame":
    """From all records to those that do not count, as letters: where each was, what it was, and what is wrong.

    A letter is never larger than a topic takes, whatever it tells of: else one record would end the query, at every
    start again."""
    letter = F.struct(
        F.col("topic"),
        F.col("partition"),
        F.col("offset"),
        F.unix_millis("timestamp").alias("timestamp"),
        *_told("key", MOST_KEY_CHARACTERS),
        *_told("value", MOST_VALUE_CHARACTERS),
        F.col(VERDICT).alias("reason"),
    )
    is_late = F.col(VERDICT) == LATE
    return judged.where(F.col(VERDICT).isNotNull()).select(
        F.when(is_late, F.lit(pipeline.late.name)).otherwise(F.lit(pipeline.dead_letters.name)).alias("topic"),
        F.when(F.octet_length("key") <= MOST_KEY_BYTES, F.col("key")).alias("key"),
        F.to_json(letter).alias("value"),
    )


def _told(name: str, most: int) -> list[Column]:
    """The bytes of a column as text where they are that, else in base64, which is said then; from the beginning, so
    many characters at most; and how many bytes there were."""
    text = F.col(name).cast("string")
    is_text = F.is_valid_utf8(text)
    # Spark writes base64 in lines.
    coded = F.replace(F.base64(F.substring(F.col(name), 1, most // 4 * 3)), F.lit("\r\n"), F.lit(""))
    return [
        F.when(is_text, F.substring(text, 1, most)).otherwise(coded).alias(name),
        F.octet_length(name).alias(f"{name}_bytes"),
        F.when(~is_text, F.lit("base64")).alias(f"{name}_encoding"),
    ]
