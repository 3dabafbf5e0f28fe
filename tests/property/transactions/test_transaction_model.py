"""Producers that come, go, repeat themselves and lie, with crashes in between: what was decided is what happens.

- a transaction ends the way that was decided when its end was answered, in every partition, whatever comes after
- the epoch of a producer id never goes back, and a producer that was not answered with it cannot use it
- a load gives the state that was there before it
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.property.examples import examples
from tests.unit.replication.rig import turns
from tests.unit.transactions.stage import A, B, C, Stage

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.transactions import Status, TopicPartition, Transaction, TransactionSettings
from ottla.transactions.machine import Producer
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION, NO_EPOCH

Result = TypeVar("Result")
NAMES = ("one", "two")
names = st.sampled_from(NAMES)
versions = st.sampled_from([FIRST_VERSION, EPOCH_BUMP_VERSION])
numbers = st.integers(0, 30)
partitions = st.sets(st.sampled_from([A, B, C]), min_size=1)
EXPECTED_ERRORS = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class Decided(NamedTuple):
    """A decision that its producer, or nobody, was told of, and the markers that there were before."""

    is_commit: bool
    partitions: frozenset[TopicPartition]
    markers_before: int


class TransactionModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stage = Stage(settings=TransactionSettings(transactional_id_expiration_ms=1_000_000))
        self.producers: dict[str, list[Producer]] = {name: [] for name in NAMES}
        self.highest: dict[int, int] = {}
        self.decided: dict[str, Decided] = {}
        self.open: dict[str, frozenset[TopicPartition]] = {}

    def run(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """The answer; None when it is an error that a producer may get."""
        try:
            return self.loop.run_until_complete(work)
        except KafkaError as error:
            if error.code not in EXPECTED_ERRORS:
                raise
            return None

    def some(self, name: str, number: int) -> Producer:
        """A producer that the id had, more often the last one than others."""
        known = self.producers[name]
        return known[max(len(known) - 1 - number // 10, 0)] if known else (1, 1)

    @initialize()
    def start(self) -> None:
        self.loop.run_until_complete(self.stage.start())

    def state(self, name: str) -> Transaction | None:
        return self.stage.machine(name).transactions.get(name)

    # What producers do

    @rule(name=names)
    def begin(self, name: str) -> None:
        before = self.state(name)
        self.note_abort(name)
        producer = self.run(self.stage.initialize(name, timeout_ms=1000))
        if producer is not None:
            assert before is None or producer != before.producer, "a new producer has an epoch that nobody had"
            self.producers[name].append(producer)

    @rule(name=names, number=numbers)
    def begin_again(self, name: str, number: int) -> None:
        expected = self.some(name, number)
        before = self.state(name)
        if before is not None and before.producer_id == expected[0]:
            self.note_abort(name)
        producer = self.run(self.stage.initialize(name, expected=expected, timeout_ms=1000))
        if producer is not None:
            self.producers[name].append(producer)

    def note_abort(self, name: str) -> None:
        """An initialization aborts what is open, unless it is ending already."""
        before = self.state(name)
        if before is not None and before.status is Status.ONGOING:
            self.decided[name] = Decided(False, before.partitions, len(self.stage.markers.written))

    @rule(name=names, number=numbers, added=partitions, version=versions)
    def add(self, name: str, number: int, added: set[TopicPartition], version: int) -> None:
        producer = self.some(name, number)
        self.run(self.stage.add(producer, *sorted(added), name=name, version=version))

    @rule(name=names, number=numbers, partition=st.sampled_from([A, B, C]), adds=st.booleans())
    def write(self, name: str, number: int, partition: TopicPartition, adds: bool) -> None:
        producer = self.some(name, number)
        if adds and self.stage.machine(name).is_pending(name):
            return
        before = self.state(name)

        async def verify() -> bool:
            await self.stage.verify(producer, partition, adds=adds, name=name)
            return True

        if self.run(verify()):
            assert before is not None
            assert producer == before.producer, "only the present producer writes"

    @rule(name=names, number=numbers, is_commit=st.booleans(), version=versions)
    def end(self, name: str, number: int, is_commit: bool, version: int) -> None:
        before, marker_count = self.state(name), len(self.stage.markers.written)
        producer = self.some(name, number)
        after = self.run(self.stage.end(producer, commit=is_commit, name=name, version=version))
        if after is None or before is None:
            return
        if before.status is Status.ONGOING:
            assert producer == before.producer, "only the present producer ends its transaction"
            self.decided[name] = Decided(is_commit, before.partitions, marker_count)
        if after != producer:
            self.producers[name].append(after)

    # What happens meanwhile

    @rule()
    def hold_markers(self) -> None:
        self.stage.markers.holds = True

    @rule()
    def release_markers(self) -> None:
        self.stage.markers.release()
        self.loop.run_until_complete(turns(3))

    @rule()
    def time_out(self) -> None:
        self.stage.clock.advance(1001)
        now_ms = self.stage.clock.now_ms()
        for name in NAMES:
            before = self.state(name)
            if before is not None and before.has_timed_out(now_ms) and not self.stage.machine(name).is_pending(name):
                self.decided[name] = Decided(False, before.partitions, len(self.stage.markers.written))
        self.loop.run_until_complete(self.stage.coordinator.abort_timed_out())
        self.loop.run_until_complete(turns(3))

    @rule()
    def crash(self) -> None:
        before = {name: self.state(name) for name in NAMES}
        holds, self.stage.markers.holds = self.stage.markers.holds, True
        self.loop.run_until_complete(self.stage.restart())
        for name, state in before.items():
            if state is not None:
                assert self.state(name) == replace(state, last_producer_epoch=NO_EPOCH)
        self.stage.markers.holds = holds
        if not holds:
            self.release_markers()

    # What must be true

    @invariant()
    def epochs_never_go_back(self) -> None:
        for name in NAMES if hasattr(self.stage, "coordinator") else ():
            state = self.state(name)
            if state is not None:
                assert self.highest.get(state.producer_id, -1) <= state.producer_epoch
                self.highest[state.producer_id] = state.producer_epoch

    @invariant()
    def every_transaction_ends_as_decided(self) -> None:
        for name, decided in list(self.decided.items()):
            state = self.state(name)
            assert state is not None
            if state.status.is_prepared:
                assert (state.status is Status.PREPARE_COMMIT) == decided.is_commit
            elif state.status is not Status.ONGOING or state.partitions != decided.partitions:
                self.check_markers(name, decided)
                del self.decided[name]

    def check_markers(self, name: str, decided: Decided) -> None:
        own = {producer_id for producer_id, _ in self.producers[name]}
        since = self.stage.markers.written[decided.markers_before :]
        mine = [(ended, each) for ended, each in since if ended.producer_id in own]
        assert {ended.is_commit for ended, _ in mine} == {decided.is_commit}
        assert {each for _, each in mine} == decided.partitions

    def teardown(self) -> None:
        if hasattr(self.stage, "coordinator"):
            self.release_markers()
            self.loop.run_until_complete(turns(10))
            self.every_transaction_ends_as_decided()
            assert not self.decided
            assert not any(self.stage.machine(name).is_pending(name) for name in NAMES)
            self.stage.coordinator.stop()
        self.loop.close()


TestTransactions = TransactionModel.TestCase
TestTransactions.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
