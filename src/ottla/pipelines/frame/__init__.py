"""The frame of all pipelines: what a pipeline says about itself, and everything that is the same for each.

    PIPELINE = Pipeline(
        name="campaign",
        title="Campaigns compared, as it goes",
        inputs=(Input(Topic("campaign.views"), "campaign_id STRING, user_id STRING"), ...),
        tables=(Table(Topic("campaign.campaigns", 1, COMPACTED), "experiment STRING, arm STRING"),),
        results=(Topic("campaign.comparisons", configs=COMPACTED),),
        queries=(Query("comparisons", (Answer(compare, ToTopic("campaign.comparisons")),)),),
        generate=events,                      # (seed, start_ms, rate) -> endless Iterator[Event]
        views=(View("Campaigns", "campaign.comparisons", columns=(...), sort_by="window_start", descending=True),),
    )

| module       | holds                                                                                       |
|--------------|---------------------------------------------------------------------------------------------|
| `pipeline`   | `Pipeline`, `Topic`, `Input`, `Table`, `Rule`, `Query`, `Answer`, `View` ...; no Spark      |
| `generating` | `Event`, `Disorder` (duplicate, late, malformed events for a generator), `feed`; no Spark   |
| `catalogue`  | from a pipeline's name to its `PIPELINE`, loaded when it is asked for                       |
| `topics`     | creates what a pipeline reads and writes                                                    |
| `place`      | brokers, source, directory                                                                  |
| `schemas`    | the columns of records and events                                                           |
| `session`    | the Spark session: RocksDB, this Python for workers, `format("ottla")`                      |
| `reading`    | `Streams`: what a query is built from                                                       |
| `judging`    | which records count, which are malformed, which are late, and the letters of the rest       |
| `writing`    | all answers of a query as one stream, to topics and to the lake, exactly once               |
| `lake`       | the files of the lake: written by tasks, made part of a table by the driver                 |
| `checkpoints`, `beginning` | the layout of checkpoints; where a pipeline begins when they were put aside   |
| `job`        | runs queries: `start_query` for ever, `run_once` to the end of what is there                |
| `progress`, `delays` | rows per second, lag in records and in time, what was left out, as a topic          |
| `running`    | several pipelines in one session, generators in threads                                     |
| `order`      | a run from beginning to end                                                                 |
| `results`    | result topics as tables, read at read_committed, without Spark                              |
| `telling`    | what ends a run, as one sentence                                                            |

## What a query is built from: `Streams`

| call                          | gives                                                                              |
|-------------------------------|------------------------------------------------------------------------------------|
| `streams.events(*topics)`     | a stream of the accepted events of these inputs (all inputs where none is named):  |
|                               | `event_id STRING`, `event_time TIMESTAMP` (watermarked), the fields of the inputs  |
|                               | (null where an input has no such field), `topic`, `partition`, `offset`,           |
|                               | `timestamp`, `key BINARY`                                                          |
| `streams.chained(topic, ddl)` | a stream of a result topic at read_committed: the fields of its JSON, and the same |
|                               | columns of the record; not judged, no watermark                                    |
| `streams.table(topic)`        | one of the pipeline's tables as a static one for joins: the last row of each key,  |
|                               | with `key STRING`; as it is when a micro-batch begins                              |
| `once_each(events)`           | (`reading`) duplicates by `event_id` dropped                                       |

A query has one or more answers, and is one pass over what it reads: all its answers, and the letters of what does not
count, come out of the same micro-batches. An answer's function takes `Streams` and gives a DataFrame. `ToTopic` wants
the columns `key` and `value` (strings; and `topic` where it names none); `json_value(...)` (`writing`) makes a value.
`ToLake` takes any columns. Queries are listed so that one that reads what another writes comes after it: `run_once`
runs them in that order.

## Rules for all pipelines

- Values are JSON objects with `event_id` (string) and `event_time` (epoch milliseconds). Fields are not named like a
  column of a record (key, value, topic, partition, offset, timestamp). Every field of an input's DDL is required
  unless it is in `optional`; a `Rule` is a condition in SQL and what is wrong where it does not hold.
- A record is *malformed* if its value is no JSON object, a required field is missing or of another type, a rule does
  not hold, or its event_time is more than a minute after its record's timestamp (more than the lateness, where that is
  less). It goes to `<pipeline>.dead-letters`, with the reason and its place, and is counted. A record of a table is
  malformed if it has no key, or a value that is not null and no row; its key then has no row.
- A record is *late* if its event_time is more than the pipeline's lateness before its record's timestamp, which is
  when it was sent (or appended, if the topic says so). It goes to `<pipeline>.late`. Both are said by the record alone,
  so they do not depend on how the stream is cut into batches; each record is accepted, malformed or late, once.
- Spark's own watermark waits for twice the lateness after the newest event. That may be a minute ahead (or the
  lateness, where that is less), so no accepted event is dropped as long as partitions are read at most the lateness
  less that apart. What is dropped all the same is counted (`Progress.dropped`). State is kept for that long; answers
  are right at any time and final once the time of arrival is the lateness after the window.
- Dead letters and late events come out of the first query's pass by themselves (`Query.takes_rejects`).
- `job.py` and `events.py` of a pipeline load no Spark at import: query functions import their `transform` when called.
- A query is written by `foreachBatch` under its batch's number, in append and in update mode: Spark has no update mode
  for sinks in Python. `applyInPandasWithState` works in both; `transformWithState` needs the package protobuf.
"""
