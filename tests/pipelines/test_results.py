"""Result topics as tables: all of them, or as much as a screen shows; whatever was deleted of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ottla import Admin, Producer
from ottla.pipelines.frame.pipeline import View
from ottla.pipelines.frame.results import MOST_ROWS, Results, in_order, read_tables
from ottla.testing import TestBroker


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        broker.create_topic("letters")
        broker.create_topic("scores")
        yield broker


def test_what_came_after_deleted_records_is_read(broker: TestBroker) -> None:
    for number in range(3):
        broker.produce("letters", json.dumps({"n": number}), key=f"k{number}")
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({("letters", 0): 2}).raise_for_errors()
    tables = read_tables({"bootstrap.servers": broker.bootstrap_servers}, ["letters"])
    assert tables == {"letters": {"k2": {"n": 2}}}


def test_a_screen_keeps_what_it_may_show_and_no_more(broker: TestBroker) -> None:
    count = 5 * MOST_ROWS
    with Producer[str, str](broker.bootstrap_servers, key_serializer="str", value_serializer="str") as producer:
        for number in range(count):
            producer.send("scores", json.dumps({"score": number % count}), key=f"post-{number}")
            producer.send("letters", "no matter what", key=f"{number}")
    view = View("Best", "scores", ("score",), sort_by="score", descending=True)
    with Results({"bootstrap.servers": broker.bootstrap_servers}, views=[view], counted=["letters"]) as results:
        results.update()
        best = in_order(results.tables["scores"], view)[:MOST_ROWS]
    assert best == [f"post-{number}" for number in range(count - 1, count - 1 - MOST_ROWS, -1)]
    assert len(results.tables["scores"]) <= 2 * MOST_ROWS
    assert results.tables.keys() == {"scores"}
    assert results.counts == {"scores": count, "letters": count}
