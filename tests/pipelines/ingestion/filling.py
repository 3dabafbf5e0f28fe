"""Topics with something to load: records over some hours, and transactions."""

from __future__ import annotations

from tests.pipelines.driving import START_MS
from tests.spark.conftest import Target

from ottla import Producer

_HOURS_MS = 4 * 3_600_000


def brokers(target: Target) -> dict[str, object]:
    return {"bootstrap.servers": target.bootstrap}


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
    with Producer(target.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for is_kept in (True, False, True):
            producer.begin_transaction()
            for number in range(50):
                producer.send(topic, b"in a transaction %d" % number, timestamp=START_MS)
            if is_kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
