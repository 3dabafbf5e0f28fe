"""Topics with something to load: records over some hours, and transactions."""

from __future__ import annotations

from typing import Any

from tests.pipelines.driving import START_MS
from tests.spark.conftest import Target

from ottla import Producer
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.loading import RECORDS_A_TASK, Deleted, plan, run_tasks

_HOURS_MS = 4 * 3_600_000


def brokers(target: Target) -> dict[str, object]:
    return {"bootstrap.servers": target.bootstrap}


def load(spark: Any, target: Target, topic: str, lake: Lake, *, records_a_task: int = RECORDS_A_TASK) -> list[Deleted]:
    """What `ottla lake load` does."""
    tasks = list(plan(brokers(target), [topic], lake.state(), records_a_task))
    return run_tasks(spark, brokers(target), tasks, lake)


def records(spark: Any, target: Target, topic: str) -> Any:
    """All that a topic has, as a batch of the stream would have it."""
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", target.bootstrap)
    reader = reader.option("kafka.isolation.level", "read_committed").option("includeHeaders", "true")
    return reader.option("subscribe", topic).load()


def fill(target: Target, topic: str, count: int) -> None:
    """Evenly over four hours, some with headers. At the end come three transactions, of which one is aborted."""
    producer: Producer[bytes, bytes]
    with Producer(target.bootstrap, linger_ms=20) as producer:
        for number in range(count):
            producer.send(
                topic,
                b"value %d" % number,
                key=b"%d" % (number % 50),
                headers={"number": b"%d" % number} if number % 10 == 0 else None,
                timestamp=START_MS + number * _HOURS_MS // count,
            )
    transactions(target, topic, True, False, True, records=50)


def transactions(target: Target, topic: str, *fates: bool, records: int) -> None:
    """Each of so many records and its end, which is an offset, too. Those that are not kept are aborted."""
    producer: Producer[bytes, bytes]
    with Producer(target.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for number, is_kept in enumerate(fates):
            producer.begin_transaction()
            for record in range(records):
                producer.send(topic, b"%d of transaction %d" % (record, number), timestamp=START_MS)
            # What is aborted is in the log as well.
            producer.flush()
            if is_kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
