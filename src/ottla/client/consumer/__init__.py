"""The consumer: fetch sessions, positions, records and tables, commits.

| module                         | holds                                                                            |
|--------------------------------|----------------------------------------------------------------------------------|
| `consumer`, `offsets`, `tables`| the face: `AsyncConsumer`                                                        |
| `core`                         | the parts of one consumer, put together                                          |
| `positions`                    | where it stands in each partition                                                |
| `fetcher`, `sessions`          | which fetches are sent, and what becomes of answers; sans-IO                     |
| `batches`, `_native`, `_pure`  | from the bytes of an answer to records                                           |
| `prefetch`                     | what was fetched and not handed out; the one place that two threads share        |
| `supply`, `lookups`            | the questions to brokers that keep the prefetch filled                           |
| `commits`, `groups`            | committed offsets; the consumer's side of rebalances                             |
| `attention`                    | what waits for the user: errors and rebalances                                   |
| `table_reader`, `columns`, `json_columns` | records as Arrow                                                      |
"""

from ottla.client.consumer._twin import Chunk, Record, RecordIterator
from ottla.client.consumer.consumer import AsyncConsumer
from ottla.client.consumer.values import GroupMetadata, RebalanceListener, TimestampType

__all__ = [
    "AsyncConsumer",
    "Chunk",
    "GroupMetadata",
    "RebalanceListener",
    "Record",
    "RecordIterator",
    "TimestampType",
]
