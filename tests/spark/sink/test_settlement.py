"""The protocol of exactly-once, step by step, on both brokers: what a crash at each step leaves, and that the repeated
batch makes it whole, however it is cut into tasks this time."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.conftest import Target
from tests.spark.sink.writing import options_of, values

from ottla.client.errors import ConfigError, Fenced
from ottla.client.types import StagedTransaction

pytest.importorskip("pyspark.sql", reason="pyspark is not installed")

from ottla.spark.sink.decisions import Decider, Decision, DecisionLog, DecisionState, ensure_topic
from ottla.spark.sink.exactly_once import key_of
from ottla.spark.sink.options import read_options
from ottla.spark.sink.rows import HandedOver, RowShape
from ottla.spark.sink.settlement import BatchSuperseded, DecidedRowsLost, Settlement, StagedRowsLost
from ottla.spark.sink.staging import ids_of, stage_rows

_query_numbers = itertools.count(1)
_PARTITIONS = 2


class Crash(BaseException):
    """The driver dies here."""


class Driver(Settlement):
    """One that dies before or behind a step; `ends` is how many transactions it ends before it does."""

    dies: str = ""
    ends: int | None = None

    def decide(self, decider: Decider, decision: Decision, rows: HandedOver | None) -> None:
        self._perhaps("before the decision")
        super().decide(decider, decision, rows)
        self._perhaps("after the decision")

    def roll_forward(self, decision: Decision) -> None:
        if self.ends is not None:
            self._admin.end_transactions(decision.transactions[: self.ends], commit=True).raise_for_errors()
            raise Crash
        super().roll_forward(decision)
        self._perhaps("after the last end")

    def conclude(self, decider: Decider, decision: Decision) -> None:
        super().conclude(decider, decision)
        self._perhaps("at the end")

    def _perhaps(self, here: str) -> None:
        if self.dies == here:
            raise Crash


class Query:
    """A streaming query without Spark: its tasks and its driver."""

    def __init__(self, target: Target, topic: str, **options: object) -> None:
        self.target = target
        self.topic = topic
        self.key = f"ottla-spark-query{next(_query_numbers)}"
        self.run = 1
        given = {"deliveryGuarantee": "exactly-once", "handOverBytes": 0, **options}
        self.options = read_options(options_of(target, topic=topic, **given))
        ensure_topic(self.options)

    def stage(self, batch: int, tasks: int, rows: int = 12) -> list[StagedTransaction]:
        """The rows of a batch, cut into so many tasks."""
        found = []
        for task in range(tasks):
            numbers = [number for number in range(rows) if number % tasks == task]
            batch_rows = pa.record_batch(
                {
                    "value": pa.array([f"{batch}/{number:03}".encode() for number in numbers], pa.binary()),
                    "partition": pa.array([number % _PARTITIONS for number in numbers], pa.int32()),
                }
            )
            shape = RowShape(self.topic, has_key=False, has_headers=False, has_partition=True)
            staged = stage_rows(self.options, shape, self.family, iter([batch_rows]))
            assert staged.transaction is not None
            assert staged.row_count == len(numbers)
            found.append(staged.transaction)
        return found

    def driver(self, dies: str = "", ends: int | None = None) -> Driver:
        driver = Driver(self.options, self.key)
        driver.dies, driver.ends = dies, ends
        return driver

    def commit(self, batch: int, staged: list[StagedTransaction], *, repeats: bool = False) -> None:
        self.driver().commit(batch, staged, family=self.family, is_repeated=repeats)

    def abort(self, batch: int, *, is_complete: bool = True) -> None:
        self.driver().abort(batch, family=self.family, is_complete=is_complete)

    @property
    def family(self) -> str:
        return f"{self.key}-{self.run}"

    @property
    def log(self) -> DecisionLog:
        return DecisionLog(self.options, self.key)

    def open(self) -> list[str]:
        listed = self.target.admin.list_transactions(states=["Ongoing"])
        return [one.transactional_id for one in listed if one.transactional_id.startswith(self.key)]

    def visible(self) -> list[bytes]:
        return values(self.target, self.topic, _PARTITIONS)


def named(target: Target, topic: str, name: str) -> Query:
    query = Query(target, topic)
    query.key = key_of(query.options, name)
    return query


def rows_of(*batches: int, rows: int = 12) -> list[bytes]:
    return [f"{batch}/{number:03}".encode() for batch in batches for number in range(rows)]


@pytest.fixture
def query(target: Target) -> Query:
    return Query(target, target.topic(_PARTITIONS))


def test_a_name_that_begins_another_leaves_its_rows_alone(target: Target) -> None:
    names = ("orders", "orders-eu", "orders.", "orders.-eu", "orders..-eu")
    topics = [target.topic(_PARTITIONS) for _ in names]
    queries = [named(target, topic, f"{topics[0]}-{name}") for topic, name in zip(topics, names, strict=True)]
    staged = [query.stage(0, tasks=2) for query in queries]
    for query, transactions in zip(queries, staged, strict=True):
        query.commit(0, transactions)
    assert [query.visible() for query in queries] == [rows_of(0)] * len(names)


def test_a_batch_appears_as_a_whole_when_it_is_committed(query: Query) -> None:
    staged = query.stage(0, tasks=3)
    assert query.visible() == []
    query.commit(0, staged)
    assert query.visible() == rows_of(0)
    assert query.open() == []
    assert query.log.last() == Decision(0, DecisionState.ENDED, ())


def test_what_was_not_decided_is_written_anew_and_the_old_attempt_is_aborted(query: Query) -> None:
    staged = query.stage(0, tasks=2)
    with pytest.raises(Crash):
        query.driver(dies="before the decision").commit(0, staged, family=query.family)
    assert query.log.last() is None
    again = query.stage(0, tasks=5)
    assert not set(again) & set(staged)
    query.commit(0, again)
    assert query.visible() == rows_of(0)
    assert query.open() == []


@pytest.mark.parametrize(
    "crash", [{"dies": "after the decision"}, {"ends": 0}, {"ends": 1}, {"ends": 2}, {"dies": "after the last end"}]
)
def test_what_was_decided_is_rolled_forward(query: Query, crash: dict[str, Any]) -> None:
    staged = query.stage(0, tasks=3)
    with pytest.raises(Crash):
        query.driver(**crash).commit(0, staged, family=query.family)
    decided = query.log.last()
    assert decided == Decision(0, DecisionState.DECIDED, tuple(staged))
    query.commit(0, [], repeats=True)
    assert query.visible() == rows_of(0)
    assert query.open() == []
    query.commit(1, query.stage(1, tasks=2))
    assert query.visible() == rows_of(0, 1)


def test_a_repetition_after_the_end_changes_nothing(query: Query) -> None:
    with pytest.raises(Crash):
        query.driver(dies="at the end").commit(0, query.stage(0, tasks=2), family=query.family)
    for _ in range(2):
        query.commit(0, [], repeats=True)
    assert query.visible() == rows_of(0)


def test_rows_that_were_staged_for_a_batch_that_another_driver_decided_are_aborted(query: Query) -> None:
    """Both drivers' tasks looked before there was a decision: the first decision stands for both."""
    first, second = query.stage(0, tasks=2), query.stage(0, tasks=3)
    query.commit(0, first)
    query.commit(0, second)
    assert query.visible() == rows_of(0)
    assert query.open() == []


def test_a_driver_that_repeats_an_old_batch_leaves_alone_what_a_newer_one_has_staged(query: Query) -> None:
    """The newer one is at the next batch already, and has yet to decide it."""
    query.commit(0, query.stage(0, tasks=2))
    query.run = 2
    newer = query.stage(1, tasks=2)
    query.run = 1
    leftover = query.stage(0, tasks=1)
    query.commit(0, [], repeats=True)
    assert sorted(query.open()) == sorted(one.transactional_id for one in newer)
    query.abort(1, is_complete=False)
    assert leftover[0].transactional_id not in query.open()
    query.run = 2
    query.commit(1, newer)
    assert query.visible() == rows_of(0, 1)


def test_a_batch_without_rows_is_decided_too(query: Query) -> None:
    query.commit(7, [])
    assert query.log.last() == Decision(7, DecisionState.ENDED, ())
    with pytest.raises(BatchSuperseded):
        query.commit(6, query.stage(6, tasks=1))


def test_a_driver_that_was_replaced_cannot_decide(query: Query) -> None:
    staged = query.stage(0, tasks=2)
    with Decider(query.options, query.log) as zombie, Decider(query.options, query.log) as newer:
        newer.write(Decision(0, DecisionState.DECIDED, tuple(staged)))
        with pytest.raises(Fenced, match="another driver has taken this query over"):
            zombie.write(Decision(0, DecisionState.DECIDED, ()))
    assert query.log.last() == Decision(0, DecisionState.DECIDED, tuple(staged))


def test_a_decision_may_name_very_many_transactions(query: Query) -> None:
    many = tuple(StagedTransaction(f"{query.family}-process-{number}", number, 0) for number in range(15_000))
    decision = Decision(0, DecisionState.DECIDED, many)
    with Decider(query.options, query.log) as decider:
        decider.write(decision)
    assert query.log.last() == decision


def test_a_batch_that_was_overtaken_is_refused(query: Query) -> None:
    query.commit(4, query.stage(4, tasks=1))
    late = query.stage(3, tasks=1)
    with pytest.raises(BatchSuperseded, match=r"batch 3 .* comes after batch 4 was decided"):
        query.commit(3, late)
    assert query.visible() == rows_of(4)


def test_attempts_that_nobody_took_are_aborted_with_the_commit(query: Query) -> None:
    """A task ran twice, because it was slow or its executor was lost: the driver has the message of one."""
    staged = query.stage(0, tasks=2)
    query.stage(0, tasks=2)
    query.commit(0, staged)
    assert query.visible() == rows_of(0)
    assert query.open() == []


def test_abort_ends_what_was_staged(query: Query) -> None:
    query.stage(0, tasks=2)
    query.abort(0)
    assert query.open() == []
    assert query.visible() == []


@pytest.mark.parametrize("crash", [{"dies": "after the decision"}, {"ends": 1}, {"dies": "at the end"}])
def test_abort_never_undoes_what_was_decided(query: Query, crash: dict[str, Any]) -> None:
    """Spark calls it with all messages when a commit failed half way."""
    staged = query.stage(0, tasks=3)
    with pytest.raises(Crash):
        query.driver(**crash).commit(0, staged, family=query.family)
    query.abort(0)
    query.commit(0, [], repeats=True)
    assert query.visible() == rows_of(0)


def test_abort_leaves_alone_what_a_decision_under_way_may_still_make_count(query: Query) -> None:
    staged = query.stage(0, tasks=2)
    with Decider(query.options, query.log) as decider:
        producer = decider._producer
        producer.begin_transaction()
        decision = Decision(0, DecisionState.DECIDED, tuple(staged)).to_bytes()
        delivery = producer.send(
            query.options.decisions_topic, decision, key=query.key.encode(), partition=query.log.partition
        )
        delivery.result(60)
        query.abort(0)
        assert sorted(set(query.open()) - {decider.transactional_id}) == sorted(one[0] for one in staged)
        producer.commit_transaction()
    query.commit(0, [], repeats=True)
    assert query.visible() == rows_of(0)


def test_a_transaction_that_is_gone_before_the_decision_lets_the_batch_be_repeated(query: Query) -> None:
    staged = query.stage(0, tasks=3)
    query.target.admin.end_transactions(staged[1:2], commit=False).raise_for_errors()
    with pytest.raises(StagedRowsLost, match=f"1 of its 3 transactions .* the first is {staged[1].transactional_id}"):
        query.commit(0, staged)
    assert query.log.last() is None
    query.abort(0)
    query.commit(0, query.stage(0, tasks=2))
    assert query.visible() == rows_of(0)


def test_a_decided_transaction_that_is_gone_fails_the_query_by_name(query: Query) -> None:
    staged = query.stage(0, tasks=3)
    with pytest.raises(Crash):
        query.driver(dies="after the decision").commit(0, staged, family=query.family)
    query.target.admin.end_transactions(staged[:1], commit=False).raise_for_errors()
    for _ in range(2):
        with pytest.raises(
            DecidedRowsLost, match=rf"batch 0 of {query.key} .*1 of its 3.*{staged[0].transactional_id}"
        ):
            query.commit(0, [], repeats=True)
    lenient = read_options(
        options_of(query.target, topic=query.topic, deliveryGuarantee="exactly-once", failOnDataLoss="false")
    )
    Settlement(lenient, query.key).commit(0, [], family=query.family, is_repeated=True)
    assert query.visible() == sorted(row for row in rows_of(0) if int(row[2:]) % 3)
    query.commit(1, query.stage(1, tasks=1))
    assert query.visible()[-12:] == rows_of(1)


def test_a_process_uses_its_ids_again_once_they_are_free(query: Query) -> None:
    for batch in range(4):
        query.commit(batch, query.stage(batch, tasks=2))
    assert len(ids_of(query.family).epochs) == 2
    assert query.visible() == rows_of(0, 1, 2, 3)
    query.stage(4, tasks=1)
    query.stage(4, tasks=2)
    assert len(ids_of(query.family).epochs) == 3


def test_a_timeout_that_brokers_do_not_allow_is_named(target: Target) -> None:
    query = Query(target, target.topic(_PARTITIONS), kafka_transaction_timeout_ms=2**31 - 1)
    with pytest.raises(ConfigError, match=r"option kafka\.transaction\.timeout\.ms=2147483647 .* raise their"):
        query.stage(0, tasks=1)
