"""How far queries are behind in time, and how long events wait: by the timestamps of the records themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target

from ottla import Admin, Producer
from ottla.pipelines.frame.delays import SendTimes, behind_ms, untaken
from ottla.pipelines.frame.pipeline import Topic
from ottla.pipelines.frame.progress import PROGRESS, Progress, Reporter
from ottla.pipelines.frame.topics import create_topics
from ottla.testing import TestBroker

VISITS = "visits"
NOW_MS = 1_767_225_600_000


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        broker.create_topic(VISITS, partitions=2)
        yield broker


def send(bootstrap: str, partition: int, *timestamps: int) -> None:
    """Each in a batch of its own."""
    with Producer[bytes, bytes](bootstrap) as producer:
        for timestamp in timestamps:
            producer.send(VISITS, b"value", partition=partition, timestamp=timestamp)
            producer.flush()


def test_records_are_found_wherever_queries_are_in_the_same_partition(broker: TestBroker) -> None:
    send(broker.bootstrap_servers, 0, *range(NOW_MS, NOW_MS + 5))
    send(broker.bootstrap_servers, 1, NOW_MS + 100)
    times = SendTimes({"bootstrap.servers": broker.bootstrap_servers})
    spots = {(VISITS, 0, 1), (VISITS, 0, 4), (VISITS, 1, 0)}
    found = _until_all(times, spots)
    times.close()
    assert found == {(VISITS, 0, 1): NOW_MS + 1, (VISITS, 0, 4): NOW_MS + 4, (VISITS, 1, 0): NOW_MS + 100}


def test_what_was_deleted_counts_no_more_and_what_is_known_is_not_fetched_again(broker: TestBroker) -> None:
    send(broker.bootstrap_servers, 0, *range(NOW_MS, NOW_MS + 5))
    times = SendTimes({"bootstrap.servers": broker.bootstrap_servers})
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({(VISITS, 0): 3}).raise_for_errors()
    assert _until_all(times, {(VISITS, 0, 1)}) == {(VISITS, 0, 1): NOW_MS + 3}
    broker.stop()
    assert times.at({(VISITS, 0, 1)}) == {(VISITS, 0, 1): NOW_MS + 3}
    times.close()


def test_brokers_that_are_away_cost_an_answer_and_no_wait(broker: TestBroker) -> None:
    times = SendTimes({"bootstrap.servers": broker.bootstrap_servers})
    broker.stop()
    assert times.at({(VISITS, 0, 0)}) == {}
    times.close()


def _until_all(times: SendTimes, spots: set[tuple[str, int, int]]) -> dict[tuple[str, int, int], int]:
    """Asked as a report asks: again, where a busy machine has not found them in time."""
    ends_at = time.monotonic() + 60
    while len(found := dict(times.at(spots))) < len(spots):
        assert time.monotonic() < ends_at, found
    return found


def test_the_oldest_record_decides_how_far_a_query_is_behind() -> None:
    oldest = untaken({("a", 0): 5, ("a", 1): 7, ("b", 0): 0}, {("a", 0): 9, ("a", 1): 7, ("b", 0): 3})
    assert oldest == {("a", 0, 5), ("b", 0, 0)}
    assert behind_ms(oldest, {("a", 0, 5): NOW_MS - 3_000, ("b", 0, 0): NOW_MS - 8_000}, NOW_MS) == 8_000
    assert behind_ms(oldest, {}, NOW_MS) is None
    assert behind_ms([], {}, NOW_MS) == 0
    # Its clock is ahead of ours.
    assert behind_ms([("b", 0, 0)], {("b", 0, 0): NOW_MS + 50}, NOW_MS) == 0


def test_a_query_is_behind_by_the_age_of_what_it_has_not_taken(
    pipeline_spark: Any, ottla_target: Target, tmp_path: Path
) -> None:
    bootstrap = ottla_target.bootstrap
    create_topics([PROGRESS, Topic(VISITS, partitions=2)], {"bootstrap.servers": bootstrap})
    now_ms = time.time_ns() // 1_000_000
    send(bootstrap, 0, now_ms - 500_000, now_ms - 100_000)
    send(bootstrap, 1, now_ms - 900_000)
    query = (
        pipeline_spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", VISITS)
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.queryName("campaign.copies")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .format("noop")
        .start()
    )
    query.awaitTermination()
    with Reporter({"bootstrap.servers": bootstrap}) as reporter:
        caught_up = _reported(reporter, query)
        send(bootstrap, 0, now_ms - 70_000, now_ms - 90_000)
        left_behind = _reported(reporter, query)
    assert (caught_up.lag, caught_up.behind_ms) == (0, 0)
    # From the oldest of its records, which was sent before anything began.
    assert caught_up.delay_ms is not None
    assert 900_000 <= caught_up.delay_ms <= caught_up.at_ms - now_ms + 900_000
    assert left_behind.lag == 2
    # The oldest is the one with the lowest offset.
    assert left_behind.behind_ms == left_behind.at_ms - (now_ms - 70_000)
    assert left_behind.delay_ms == caught_up.delay_ms


def _reported(reporter: Reporter, query: Any) -> Progress:
    """With everything that was looked up."""
    ends_at = time.monotonic() + 60
    while True:
        (found,) = reporter.report([query])
        if None not in (found.behind_ms, found.delay_ms):
            return found
        assert time.monotonic() < ends_at, found
