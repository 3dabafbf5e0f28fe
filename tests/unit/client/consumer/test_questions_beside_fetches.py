"""A question is answered while a fetch waits for records at the same broker.

The fetches here wait for long: whatever is sent behind one on its connection is answered when it has ended, and then
another fetch is on its way.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.waiting import tries

from ottla.client.sync.consumer import Consumer
from ottla.testing import TestBroker

PATIENCE_SECONDS = 50
SETTINGS: dict[str, Any] = {"fetch_max_wait_ms": 30_000, "request_timeout_ms": 60_000, "auto_offset_reset": "earliest"}


@pytest.fixture
def ottla() -> Iterator[TestBroker]:
    with TestBroker({"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("t")
        broker.create_topic("other")
        broker.produce("t", b"first")
        yield broker


@pytest.fixture
def consumer(ottla: TestBroker) -> Iterator[Consumer[Any, Any]]:
    """It has read all that there is, and a fetch waits for more."""
    with Consumer[Any, Any](ottla.bootstrap_servers, **SETTINGS) as consumer:
        consumer.assign([("t", 0)])
        fetches = ottla.faults.requests("FETCH")
        assert [record.value for record in consumer.poll(PATIENCE_SECONDS)] == [b"first"]
        consumer.poll(0)
        assert any(ottla.faults.requests("FETCH") > fetches + 1 for _ in tries())
        yield consumer


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda consumer: consumer.lag(timeout=PATIENCE_SECONDS), {("t", 0): 0}),
        (lambda consumer: consumer.end_offsets([("t", 0)], timeout=PATIENCE_SECONDS), {("t", 0): 1}),
        (lambda consumer: consumer.beginning_offsets([("t", 0)], timeout=PATIENCE_SECONDS), {("t", 0): 0}),
        (lambda consumer: consumer.seek_to_time(0, timeout=PATIENCE_SECONDS) or consumer.position(("t", 0)), 0),
        (lambda consumer: len(consumer.partitions_for("other", timeout=PATIENCE_SECONDS)), 1),
        (lambda consumer: consumer.topics(timeout=PATIENCE_SECONDS), ["other", "t"]),
        (lambda consumer: consumer.to_pandas(timeout=PATIENCE_SECONDS).shape[0], 0),
    ],
    ids=["lag", "end", "beginning", "time", "partitions", "topics", "to_pandas"],
)
def test_a_question_does_not_wait_behind_a_fetch(
    ottla: TestBroker, consumer: Consumer[Any, Any], ask: Callable[[Consumer[Any, Any]], Any], answer: Any
) -> None:
    fetches = ottla.faults.requests("FETCH")
    assert ask(consumer) == answer
    assert ottla.faults.requests("FETCH") == fetches


def test_what_asks_nothing_has_no_second_connection(ottla: TestBroker) -> None:
    with Consumer[Any, Any](ottla.bootstrap_servers, **SETTINGS) as consumer:
        consumer.assign([("t", 0)])
        assert consumer.poll(PATIENCE_SECONDS)
        assert len(consumer._client._core.network._links) == 1  # type: ignore[attr-defined]
