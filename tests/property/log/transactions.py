"""Transactions as the model of a log knows them: from the batches that were appended, and nothing else."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.unit.log.support import START_MS, batch_of, end_transaction

from ottla.log.log import Log
from ottla.log.stability import aborted_within, last_stable_offset
from ottla.records import read_header
from ottla.runtime import FileRange

if TYPE_CHECKING:
    from tests.property.log.test_log_model import Model

WRITERS = (21, 22)
COORDINATOR_EPOCH = 3


@dataclass
class Stored:
    """A batch as the model remembers it. A marker has `commit`."""

    data: bytes
    first_offset: int
    timestamps: list[int]
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    commit: bool | None = None

    @property
    def next_offset(self) -> int:
        return self.first_offset + len(self.timestamps)


def open_since(batches: Sequence[Stored]) -> dict[int, int]:
    """The first offsets of the transactions without a marker, by producer."""
    return _played(batches)[0]


def aborted_of(batches: Sequence[Stored]) -> list[tuple[int, int, int]]:
    """Producer, first offset and marker of each aborted transaction, in the order of the markers."""
    return _played(batches)[1]


def _played(batches: Sequence[Stored]) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
    opened: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    for batch in batches:
        if not batch.is_transactional:
            continue
        if batch.commit is None:
            opened.setdefault(batch.producer_id, batch.first_offset)
            continue
        first_offset = opened.pop(batch.producer_id, None)
        if first_offset is not None and not batch.commit:
            aborted.append((batch.producer_id, first_offset, batch.first_offset))
    return opened, aborted


def first_above(batches: Sequence[Stored], aborted: tuple[int, int, int], start: int) -> int:
    """The first batch of a transaction that is not below the start; -1 when all of it is."""
    producer_id, _, end = aborted
    own = (batch for batch in batches if batch.producer_id == producer_id and batch.commit is None)
    return next((batch.first_offset for batch in own if start <= batch.first_offset < end), -1)


class TransactionRules:
    """Two producers of transactions, for a machine that has a log and a model of it."""

    loop: asyncio.AbstractEventLoop
    log: Log
    model: "Model"

    def append_batch(
        self,
        batch: memoryview,
        timestamps: list[int],
        epoch_step: int,
        producer_id: int = -1,
        sequence: int = -1,
        is_transactional: bool = False,
    ) -> None:
        raise NotImplementedError

    def take_flushed(self) -> None:
        raise NotImplementedError

    @rule(producer_id=st.sampled_from(WRITERS), count=st.integers(1, 2))
    def append_in_a_transaction(self, producer_id: int, count: int) -> None:
        last = self.model.last_of(producer_id)
        sequence = last.base_sequence + len(last.timestamps) if last else 0
        batch = batch_of(
            [b"t" * 30] * count,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        self.append_batch(batch, [START_MS] * count, 0, producer_id, sequence, is_transactional=True)

    @rule(producer_id=st.sampled_from(WRITERS), commit=st.booleans())
    def end_a_transaction(self, producer_id: int, commit: bool) -> None:
        info = self.loop.run_until_complete(
            end_transaction(
                self.log,
                producer_id,
                commit=commit,
                coordinator_epoch=COORDINATOR_EPOCH,
                leader_epoch=self.model.latest_epoch,
            )
        )
        assert info.first_offset == self.model.end_offset
        found = self.log.read(info.first_offset, 1, up_to_offset=self.log.log_end_offset)
        assert found is not None
        # A marker says nothing of sequences: a producer whose records are gone stays unknown.
        self.model.batches.append(Stored(found.read(), info.first_offset, [START_MS], producer_id, 0, -1, True, commit))
        self.take_flushed()

    def check_told(self, offset: int, found: FileRange, expected: bytes) -> None:
        """A reader learns of every aborted transaction that its batches are of; `expected` begins with these."""
        told, size_bytes = aborted_within(self.log, offset, found), found.length
        end = position = 0
        while position < size_bytes:
            header = read_header(expected, position)
            end, position = header.next_offset, position + header.size_bytes
        start = self.model.start_offset
        needed = [
            (producer_id, first_offset)
            for producer_id, first_offset, last_offset in aborted_of(self.model.batches)
            if start <= first_offset < end and last_offset >= offset
        ]
        assert [pair for each in told if (pair := each[:2]) in needed] == needed

    @invariant()
    def transactions_are_those_of_the_batches(self) -> None:
        """What began below the start may be unknown, once a crash came upon it."""
        if not hasattr(self, "log"):
            return
        log, model = self.log, self.model
        start = model.start_offset
        producers = log.producer_state.producers
        expected = open_since(model.batches)
        for producer_id in WRITERS:
            entry = producers.get(producer_id)
            found = -1 if entry is None else entry.current_txn_first_offset
            first = expected.get(producer_id, -1)
            assert found == first or (-1 < first < start), (producer_id, found, first)
        high_watermark, log.high_watermark = log.high_watermark, log.log_end_offset
        log.producer_state.transactions.replicated(log.log_end_offset)
        known = [each.current_txn_first_offset for each in producers.values() if each.current_txn_first_offset >= 0]
        assert last_stable_offset(log) == max(min([*known, log.log_end_offset]), start)
        log.high_watermark = high_watermark
        first_offset = log.segments[0].base_offset
        found_aborted = [each[:3] for segment in log.segments for each in segment.transactions()]
        wanted = [each for each in aborted_of(model.batches) if each[2] >= first_offset]
        certain = [each for each in wanted if each[1] >= start]
        # Of a transaction that began below, what is left above the start may be all that is known.
        rests = {(each[0], first_above(model.batches, each, start), each[2]) for each in wanted if each[1] < start}
        assert [each for each in found_aborted if each[1] >= start and each not in rests] == certain
        assert {each[::2] for each in found_aborted} <= {each[::2] for each in wanted}
