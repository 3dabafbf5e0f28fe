"""The source: topics as DataFrames, in batches and as streams, with the options of Spark's Kafka connector.

| module         | holds                                                                                     |
|----------------|-------------------------------------------------------------------------------------------|
| `options`      | what a user asked for, checked as the connector checks it; `option_values` reads one      |
| `limits`       | where a read begins and ends: words, offsets, times; offsets as JSON                      |
| `columns`      | the connector's columns, which of them a schema asks for, and their exact Arrow types     |
| `cluster`      | the driver's questions to brokers: partitions, first and last offsets, offsets of times   |
| `planning`     | limits become offset ranges, one for a task; large ones are split                         |
| `filters`      | predicates that are applied here instead of in Spark                                      |
| `batch`        | the reader of a batch query                                                               |
| `stream`       | the reader of a streaming query: offsets of micro-batches; `admission` limits their size  |
| `publishing`   | offsets of a query as those of a consumer group, for tools that show lag; `ending` has    |
|                | those of its last batch                                                                   |
| `tasks`        | reading the ranges of one task in a worker; `rereading` keeps rows that are read again    |
| `json_values`  | values that are JSON as typed columns                                                     |
| `failures`     | what can go wrong                                                                         |

Planning runs in short-lived Python processes beside the driver, a stream's in one that lives as long as the query, and
reading in the Python workers of executors. What is sent between them is pickled: readers and ranges hold plain values.
"""
