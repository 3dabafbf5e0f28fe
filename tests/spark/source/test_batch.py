"""Batch reads: the same rows as Spark's own connector gives, on both brokers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.source.reading import CODECS, FIRST_TIME_MS, numbered, reader, rows_of, same_rows, write
from tests.waiting import tries

from ottla import Consumer, Producer

pytestmark = pytest.mark.timeout(180)


def test_codecs_headers_nulls_and_empty_partitions(spark: Any, target: Target) -> None:
    topic = target.topic(len(CODECS) + 1)
    values = [None, b"", *numbered(120), b"large " * 20_000]
    for partition, codec in enumerate(CODECS):
        write(target, topic, values, partition=partition, codec=codec)
    rows = same_rows(spark, target, subscribe=topic, includeHeaders="true")
    assert len(rows) == len(CODECS) * len(values)
    assert [row[4] for row in rows[: len(values)]] == list(range(len(values)))
    assert {row[1] for row in rows} >= {None, b"", b"value 0"}
    assert same_rows(spark, target, subscribe=topic, minPartitions=17) == [row[:7] for row in rows]


def test_transactions(spark: Any, target: Target) -> None:
    """Committed, aborted and open ones; markers are offsets without rows, also at the end of a range."""
    topic = target.topic(2)
    write(target, topic, numbered(10))
    with Producer(target.bootstrap, transactional_id=f"txn-{topic}", linger_ms=0) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for partition in range(2):
                producer.send(topic, b"transaction %d" % number, partition=partition).result(30)
            if number == 5:
                everything = same_rows(spark, target, subscribe=topic)
                committed = same_rows(spark, target, subscribe=topic, kafka_isolation_level="read_committed")
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    assert len(everything) == 10 + 12
    assert [row[1] for row in committed if row[3] == 1] == [b"transaction %d" % number for number in (0, 2, 4)]
    split = same_rows(spark, target, subscribe=topic, kafka_isolation_level="read_committed", minPartitions=15)
    assert split == committed


def test_compacted_topics_with_holes(spark: Any, target: Target) -> None:
    """The cleaner has nothing left to do before anything is compared: it works beside the reads as it likes."""
    topic = target.topic(1, cleanup_policy="compact", segment_ms="1000", min_cleanable_dirty_ratio="0.01")
    stay = _write_five_segments(target, topic)
    with Consumer(target.bootstrap) as consumer:
        for _ in tries(pause_seconds=0.1):
            consumer.assign([(topic, 0, 0)])
            offsets = consumer.to_arrow()["offset"].to_pylist()
            if offsets == stay:
                break
        else:
            pytest.fail(f"the cleaner should leave {stay}, and there are {offsets}")
    compacted = same_rows(spark, target, subscribe=topic)
    assert [row[4] for row in compacted] == stay
    assert same_rows(spark, target, subscribe=topic, minPartitions=40) == compacted
    # Ends in the middle of a hole, and a range that is nothing but one.
    for end in (100, 60):
        offsets = json.dumps({topic: {"0": end}})
        rows = same_rows(spark, target, subscribe=topic, endingOffsets=offsets)
        assert rows == [row for row in compacted if row[4] < end]


def _write_five_segments(target: Target, topic: str) -> list[int]:
    """Time stamps roll the segments. Returns the offsets that stay: the last of each key, and the active segment.

    Segments of one batch get holes inside of it; of the others, whole batches go.
    """
    with Producer(target.bootstrap, linger_ms=0) as producer:
        for number in range(200):
            segment = number // 40
            key = b"%d %d" % (segment // 2, number % 4)
            stamp = FIRST_TIME_MS + 10_000 * segment
            delivery = producer.send(topic, b"%d" % number, key=key, timestamp=stamp)
            if segment % 2 or number % 40 == 39:
                delivery.result(30)
        producer.send(topic, b"active", key=b"0 0", timestamp=FIRST_TIME_MS + 50_000).result(30)
    return [*range(76, 80), *range(156, 160), *range(196, 201)]


def test_records_that_were_deleted(spark: Any, target: Target) -> None:
    topic = target.topic(2)
    for partition in range(2):
        write(target, topic, numbered(30), partition=partition)
    target.admin.delete_records({(topic, 0): 12, (topic, 1): 30}).raise_for_errors()
    rows = same_rows(spark, target, subscribe=topic)
    assert [row[4] for row in rows] == list(range(12, 30))
    before = json.dumps({topic: {"0": 5, "1": 3}})
    assert same_rows(spark, target, subscribe=topic, startingOffsets=before, failOnDataLoss="false") == rows
    with pytest.raises(Exception, match=f"offsets 5 to 30 of {topic}-0 were asked for, and it has 12 to 30"):
        reader(spark.read, "ottla", target, subscribe=topic, startingOffsets=before).load().collect()


def test_offsets_that_never_were(spark: Any, target: Target) -> None:
    topic = target.topic()
    write(target, topic, numbered(10))
    beyond = json.dumps({topic: {"0": 25}})
    lenient = reader(spark.read, "ottla", target, subscribe=topic, endingOffsets=beyond, failOnDataLoss="false").load()
    assert [row[4] for row in rows_of(lenient)] == list(range(10))
    with pytest.raises(Exception, match=f"offsets 0 to 25 of {topic}-0 were asked for, and it has 0 to 10"):
        reader(spark.read, "ottla", target, subscribe=topic, endingOffsets=beyond).load().collect()


def test_where_to_begin_and_end(spark: Any, target: Target) -> None:
    topic = target.topic(3)
    for partition in range(3):
        write(target, topic, numbered(20 + partition), partition=partition)

    def offsets(**options: object) -> list[list[int]]:
        rows = same_rows(spark, target, subscribe=topic, **options)
        return [[row[4] for row in rows if row[3] == partition] for partition in range(3)]

    starts = json.dumps({topic: {"0": 7, "1": -2, "2": 22}})
    ends = json.dumps({topic: {"0": 9, "1": 3, "2": -1}})
    assert offsets(startingOffsets=starts, endingOffsets=ends) == [[7, 8], [0, 1, 2], []]
    late = FIRST_TIME_MS + 18_500
    assert offsets(startingTimestamp=late) == [[19], [19, 20], [19, 20, 21]]
    between = {"startingTimestamp": FIRST_TIME_MS + 2000, "endingTimestamp": FIRST_TIME_MS + 4000}
    # A time for all comes before times by partition, and those before offsets.
    wrong = json.dumps({topic: {"0": 1, "1": 1, "2": 1}})
    assert offsets(**between, startingOffsetsByTimestamp=wrong, startingOffsets=starts) == [[2, 3]] * 3
    times = {str(partition): FIRST_TIME_MS + 1000 * (20 + partition) for partition in range(3)}
    by_time = {"startingOffsetsByTimestamp": json.dumps({topic: {**times, "0": FIRST_TIME_MS + 19_000}})}
    assert offsets(**by_time, startingOffsetsByTimestampStrategy="latest") == [[19], [], []]
    with pytest.raises(Exception, match=f"{topic}-1 has no record from time .* startingOffsetsByTimestampStrategy"):
        reader(spark.read, "ottla", target, subscribe=topic, **by_time).load().collect()


def test_what_is_read(spark: Any, target: Target) -> None:
    """Partitions by hand, patterns that are found within names, many partitions, and none."""
    topics = [target.topic(2), target.topic(50)]
    for topic in topics:
        for partition in range(2):
            write(target, topic, numbered(3), partition=partition)
    assigned = json.dumps({topics[0]: [1], topics[1]: [0, 49]})
    assert {row[2:4] for row in same_rows(spark, target, assign=assigned)} == {(topics[0], 1), (topics[1], 0)}
    pattern = "park-(" + "|".join(topic.removeprefix("spark-") for topic in topics) + ")$"
    assert len(same_rows(spark, target, subscribePattern=pattern)) == 12
    assert len(same_rows(spark, target, subscribe=f" {topics[0]} , {topics[1]},")) == 12
    assert same_rows(spark, target, subscribePattern="no-such-topic-.*") == []
    assert same_rows(spark, target, assign=json.dumps({topics[1]: [30, 31]})) == []
