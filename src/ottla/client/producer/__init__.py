"""The producer: records into batches, batches into requests, answers into deliveries.

    send -> `Appender` (native) -> `PartitionQueue` -> `Sender.turn` -> `Shipment` -> `Courier` -> broker
    broker -> `Courier` -> `Sender.answered` -> `Batch.succeed` or `fail` -> `Delivery`

| module                 | holds                                                                                      |
|------------------------|--------------------------------------------------------------------------------------------|
| `producer`             | `AsyncProducer`: what users see                                                            |
| `_native`, `_pure`     | the way of a record into its batch, for any thread; `_twin` chooses                        |
| `batches`, `splitting` | a batch on its way, and one that was too large                                             |
| `waiting`, `room`      | who waits for records, and for memory: threads, coroutines, callbacks                      |
| `partitions`           | the queues of a topic, and the choice where there is no key                                |
| `sender`, `rules`      | which batches go now, and what answers mean; no I/O, no clock                              |
| `sequences`            | idempotence; no I/O, no clock                                                              |
| `shipment`, `courier`  | one Produce request, and how it gets there                                                 |
| `engine`               | the loop: turns, timers, flush, close                                                      |
| `unknown_topics`       | records whose topic is not known yet                                                       |
| `transactions`, `transaction_requests` | states of a transaction, and its requests                                  |
| `tables`, `table_rows`, `json_rows` | Arrow tables, without an object for a row                                     |

Non-obvious: a thread that sends without end holds the GIL, and the loop would get it every 5 ms only. So a thread that
has filled more batches than the loop has taken gives way in native code until the loop has had its turn (`Appender`).
"""
