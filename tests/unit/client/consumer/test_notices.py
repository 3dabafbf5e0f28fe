"""What keeps a consumer from reading, or moves it, without an error: said once in the log."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import tries

from ottla.client.sync.consumer import Consumer
from ottla.testing import TestBroker

PATIENCE_SECONDS = 30


@pytest.fixture
def ottla(caplog: pytest.LogCaptureFixture) -> Iterator[TestBroker]:
    caplog.set_level(logging.INFO, "ottla.client")
    properties = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}
    with TestBroker(properties) as broker:
        yield broker


def said(caplog: pytest.LogCaptureFixture, about: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if about in record.getMessage()]


def test_a_topic_that_is_waited_for(ottla: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    settings: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, "auto_offset_reset": "earliest"}
    with Consumer[Any, Any](ottla.bootstrap_servers, **settings) as consumer:
        consumer.assign([("orders", 0)])
        assert any(consumer.poll(0.01) or ottla.faults.requests("METADATA") > 3 for _ in tries())
        assert said(caplog, "orders") == ["topic orders does not exist: it is asked for again until it does"]
        ottla.create_topic("orders")
        ottla.produce("orders", b"x")
        assert [record.value for record in consumer.poll(PATIENCE_SECONDS)] == [b"x"]
    assert said(caplog, "orders")[1:] == ["topic orders exists now"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_without_partitions(ottla: TestBroker, caplog: pytest.LogCaptureFixture, protocol: str) -> None:
    ottla.create_topic("orders")
    settings: dict[str, Any] = {"group_id": "billing", "group_protocol": protocol}
    with (
        Consumer[Any, Any](ottla.bootstrap_servers, **settings) as first,
        Consumer[Any, Any](ottla.bootstrap_servers, **settings) as second,
    ):
        first.subscribe(["orders"])
        assert any(first.poll(0.01) or first.assignment for _ in tries())
        caplog.clear()
        second.subscribe(["orders"])
        assert any(first.poll(0.01) or second.poll(0.01) or said(caplog, "no partitions") for _ in tries())
        assert len(first.assignment) + len(second.assignment) == 1
        assert said(caplog, "no partitions") == [
            "group billing gives this consumer no partitions of orders: other members read them all, or there are none"
        ]


@pytest.mark.parametrize(("policy", "place"), [("earliest", 0), ("latest", 3)])
def test_a_position_that_is_out_of_range(
    ottla: TestBroker, caplog: pytest.LogCaptureFixture, policy: str, place: int
) -> None:
    ottla.create_topic("orders")
    ottla.produce("orders", b"a")
    ottla.produce("orders", b"b")
    ottla.produce("orders", b"c")
    with Consumer[Any, Any](ottla.bootstrap_servers, auto_offset_reset=policy) as consumer:
        consumer.assign([("orders", 0, 100)])
        assert any(consumer.poll(0.01) or consumer.position(("orders", 0)) == place for _ in tries())
        assert said(caplog, "out of") == [
            "orders-0: offset 100 is out of the range of the log, reading goes on at "
            f"{place} (auto.offset.reset={policy})"
        ]
