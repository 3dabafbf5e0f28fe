"""A log against a plain list: whatever is done to it, it holds what was appended, and after a crash a clean prefix."""

import asyncio
import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.examples import examples
from tests.property.log.holes import check_survivors, has_hole
from tests.property.log.transactions import WRITERS, Stored, TransactionRules
from tests.unit.log.fragile import FragileDisk, end_tasks
from tests.unit.log.support import START_MS, Rig, append, batch_of, read_all, whole_batches

from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import Codec, read_header, read_records

PRODUCERS = (7, 8)
GARBAGE = b"\x00\x01\x02"
OPERATIONS = ("append", "flush", "delete_records", "retention", "restart")


@dataclass
class Model:
    """Batches stay here when they are deleted: a crash may bring them back, as long as the new start is not written.

    `first_epochs` are those of records that are gone for good. Below `epochs_from`, those of records that a crash
    brought back may be unknown.
    """

    batches: list[Stored] = field(default_factory=list)
    flushed_offset: int = 0
    start_offset: int = 0
    written_start_offset: int = 0
    first_epochs: list[tuple[int, int]] = field(default_factory=list)
    epochs_from: int = 0
    latest_epoch: int = 0
    forgotten_producers: set[int] = field(default_factory=set)

    @property
    def end_offset(self) -> int:
        return max(self.start_offset, self.batches[-1].next_offset if self.batches else 0)

    def content(self) -> bytes:
        return b"".join(batch.data for batch in self.batches if batch.next_offset > self.start_offset)

    def epochs(self, from_offset: int) -> list[tuple[int, int]]:
        found = list(self.first_epochs)
        for batch in self.batches:
            epoch = read_header(batch.data).partition_leader_epoch
            if not found or found[-1][0] != epoch:
                found.append((epoch, batch.first_offset))
        while len(found) > 1 and found[1][1] <= from_offset:
            del found[0]
        return [(epoch, max(offset, from_offset)) for epoch, offset in found]

    def last_of(self, producer_id: int) -> Stored | None:
        if producer_id in self.forgotten_producers:
            return None
        own = (batch for batch in reversed(self.batches) if batch.producer_id == producer_id and batch.commit is None)
        return next(own, None)


class LogMachine(TransactionRules, RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.model = Model()

    @initialize(
        segment_bytes=st.sampled_from([400, 900, 5000]),
        interval=st.sampled_from([0, 100, 300]),
        index_bytes=st.sampled_from([36, 120, 10_000]),
        open_files=st.sampled_from([1, 2, 4096]),
    )
    def open(self, segment_bytes: int, interval: int, index_bytes: int, open_files: int) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            segment_ms=5000,
        )
        self.open_files = open_files
        self._begin()

    def _begin(self) -> None:
        self.model = Model()
        self.disk = FragileDisk()
        self.rig = Rig(self.config, disk=self.disk)
        self.rig.memory_disk = self.disk
        self.rig.memory_disk.open_files.limit = self.open_files
        self.log = self.loop.run_until_complete(self.rig.open())

    def teardown(self) -> None:
        self.loop.run_until_complete(self.rig.manager.shutdown())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    # Writing.

    @rule(
        sizes=st.lists(st.integers(0, 60), min_size=1, max_size=4),
        delay=st.integers(-2000, 3000),
        codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
        epoch_step=st.sampled_from([0, 0, 0, 1]),
    )
    def append_plain(self, sizes: list[int], delay: int, codec: Codec, epoch_step: int) -> None:
        timestamps = [max(START_MS + delay + number * 7, 0) for number in range(len(sizes))]
        batch = batch_of([b"v" * size for size in sizes], timestamps=timestamps, codec=codec)
        self.append_batch(batch, timestamps, epoch_step)

    @rule(producer_id=st.sampled_from(PRODUCERS), count=st.integers(1, 3))
    def append_idempotent(self, producer_id: int, count: int) -> None:
        last = self.model.last_of(producer_id)
        sequence = last.base_sequence + len(last.timestamps) if last else 0
        timestamps = [START_MS] * count
        batch = batch_of([b"i"] * count, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        self.append_batch(batch, timestamps, 0, producer_id, sequence)

    def append_batch(
        self,
        batch: memoryview,
        timestamps: list[int],
        epoch_step: int,
        producer_id: int = -1,
        sequence: int = -1,
        is_transactional: bool = False,
    ) -> None:
        self.model.latest_epoch = epoch = self.model.latest_epoch + epoch_step
        info = self.loop.run_until_complete(append(self.log, batch, leader_epoch=epoch))
        assert not info.duplicate
        self.model.forgotten_producers.discard(producer_id)
        assert info.first_offset == self.model.end_offset
        assert info.last_offset == info.first_offset + len(timestamps) - 1
        epoch = 0 if producer_id >= 0 else -1
        self.model.batches.append(
            Stored(bytes(batch), info.first_offset, timestamps, producer_id, epoch, sequence, is_transactional)
        )
        self.take_flushed()

    @rule(producer_id=st.sampled_from(PRODUCERS))
    def repeat_the_last_batch(self, producer_id: int) -> None:
        last = self.model.last_of(producer_id)
        if last is not None:
            batch = memoryview(bytearray(bytes(8) + last.data[8:]))
            info = self.loop.run_until_complete(append(self.log, batch))
            assert info.duplicate
            assert (info.first_offset, info.last_offset) == (last.first_offset, last.next_offset - 1)

    @rule(producer_id=st.sampled_from(PRODUCERS))
    def leave_a_gap(self, producer_id: int) -> None:
        last = self.model.last_of(producer_id)
        if last is not None:
            sequence = last.base_sequence + len(last.timestamps) + 1
            batch = batch_of([b"g"], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
            with pytest.raises(KafkaError) as caught:
                self.loop.run_until_complete(append(self.log, batch))
            assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    # Keeping.

    @rule()
    def roll(self) -> None:
        self.loop.run_until_complete(self.log.roll())
        self.take_flushed()

    @rule()
    def flush(self) -> None:
        self.loop.run_until_complete(self.log.flush())
        assert self.log.flushed_offset == self.model.end_offset
        self.take_flushed()

    @rule()
    def checkpoint(self) -> None:
        self.loop.run_until_complete(self.rig.manager.checkpoint_recovery_points())
        self.loop.run_until_complete(self.rig.manager.checkpoint_log_start_offsets())
        self.model.written_start_offset = self.model.start_offset

    @rule(count=st.integers(1, 5))
    def evict(self, count: int) -> None:
        """Files lose their descriptors: nobody must notice."""
        self.rig.memory_disk.open_files.evict(count)

    def take_flushed(self) -> None:
        self.model.flushed_offset = max(self.model.flushed_offset, self.log.flushed_offset)

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        self.model.start_offset += round(fraction * (self.model.end_offset - self.model.start_offset))
        self.log.high_watermark = self.log.log_end_offset
        self.log.advance_start(self.model.start_offset)

    @rule(retention_bytes=st.integers(-1, 2000), replicated=st.floats(0, 1))
    def apply_retention(self, retention_bytes: int, replicated: float) -> None:
        start, end = self.model.start_offset, self.model.end_offset
        self.log.high_watermark = start + round(replicated * (end - start))
        self.log.update_config(replace(self.log.config, retention_bytes=retention_bytes, file_delete_delay_ms=0))
        self.loop.run_until_complete(self.rig.manager.apply_retention())
        self.take_flushed()
        assert start <= self.log.log_start_offset <= self.log.high_watermark
        self.model.start_offset = self.log.log_start_offset
        first, *rest = self.log.segments
        assert not rest or rest[0].base_offset > self.log.log_start_offset
        if retention_bytes >= 0 and first.size_bytes and self.log.high_watermark == end:
            assert self.log.size_bytes - first.size_bytes < retention_bytes

    @rule()
    def restart(self) -> None:
        self.log = self.loop.run_until_complete(self.rig.restart())
        assert self.log.recovery_point == self.model.end_offset
        assert self.log.log_start_offset == self.model.start_offset
        self.model.written_start_offset = self.model.start_offset

    @rule(seed=st.integers(0, 2**32), suffix=st.sampled_from([".index", ".timeindex"]), damage=st.integers(0, 2))
    def restart_with_a_damaged_index(self, seed: int, suffix: str, damage: int) -> None:
        self.loop.run_until_complete(self.rig.manager.shutdown())
        disk = self.rig.memory_disk
        names = [name for name in disk.list_directory(self.rig.log_path) if name.endswith(suffix)]
        path = f"{self.rig.log_path}/{random.Random(seed).choice(names)}"
        if damage == 0:
            disk.delete(path)
        else:
            file = disk.open(path)
            file.truncate(0 if damage == 1 else file.size)
            file.append([GARBAGE])
        self.log = self.loop.run_until_complete(self.rig.open())
        assert self.log.log_end_offset == self.model.end_offset
        self.model.written_start_offset = self.model.start_offset

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.take_flushed()
        self.log = self.loop.run_until_complete(self.rig.crash(random.Random(seed).randrange))
        if has_hole(self.log):
            check_survivors(self.log, self.model.batches, self.model.flushed_offset)
            self.loop.run_until_complete(self.rig.manager.shutdown())
            self._begin()
            return
        end = self.log.log_end_offset
        assert self.model.flushed_offset <= end <= self.model.end_offset
        assert self.model.written_start_offset <= self.log.log_start_offset <= self.model.start_offset
        old_start, self.model.start_offset = self.model.start_offset, self.log.log_start_offset
        while self.model.end_offset > end:
            self.model.batches.pop()
        assert self.model.end_offset == end
        self._forget(old_start)

    @rule(operation=st.sampled_from(OPERATIONS), calls=st.integers(0, 25), seed=st.integers(0, 2**32))
    def crash_inside(self, operation: str, calls: int, seed: int) -> None:
        """At any call to the disk of whatever is under way, and once more in the start after that."""
        flushed, log = self.log.flushed_offset, self.log
        with self.disk.cut_after(calls):
            self._do(operation)
        self.model.flushed_offset = max(self.model.flushed_offset, flushed, log.flushed_offset)
        # Files that were renamed by then are gone; the start that goes with that was not written yet.
        self.model.start_offset = max(self.model.start_offset, log.log_start_offset)
        self.log = log
        end_tasks(self.loop)
        self.disk.power_on()
        self.disk.crash(random.Random(seed).randrange)
        with self.disk.cut_after(calls // 2):
            self.loop.run_until_complete(self.rig.open())
        end_tasks(self.loop)
        self.disk.power_on()
        self.crash(seed + 1)

    def _do(self, operation: str) -> None:
        if operation == "append":
            for number in range(6):
                self.append_plain([40, 3], number, Codec.NONE, 0)
                self.append_in_a_transaction(WRITERS[number % 2], 1)
                self.end_a_transaction(WRITERS[number % 2], number % 3 == 0)
        elif operation == "retention":
            self.apply_retention(300, 1.0)
        elif operation == "delete_records":
            self.delete_records(0.7)
            self.checkpoint()
        elif operation == "restart":
            self.restart()
        else:
            self.flush()
            self.checkpoint()

    def _forget(self, old_start: int) -> None:
        """What is below the start may be unknown after a crash, and all is when not even the start was reached."""
        model = self.model
        if model.batches and model.batches[-1].next_offset < model.start_offset:
            model.batches.clear()
            model.first_epochs = self.log.leader_epochs.entries()
            model.forgotten_producers.update((*PRODUCERS, *WRITERS))
            assert not self.log.producer_state.producers
        offsets = range(model.start_offset, max(old_start, model.epochs_from) + 1)
        entries = self.log.leader_epochs.entries()
        model.epochs_from = next((offset for offset in offsets if model.epochs(offset) == entries), model.start_offset)
        for producer_id in (*PRODUCERS, *WRITERS):
            last = model.last_of(producer_id)
            # A marker above the start may be all that is left of one.
            entry = self.log.producer_state.producers.get(producer_id)
            is_known = entry is not None and bool(entry.batches)
            if last is not None and last.first_offset < model.start_offset and not is_known:
                model.forgotten_producers.add(producer_id)

    # Reading.

    @rule(fraction=st.floats(0, 1), max_bytes=st.integers(0, 2000), limit=st.floats(0, 1), whole=st.booleans())
    @precondition(lambda self: bool(self.model.batches))
    def read(self, fraction: float, max_bytes: int, limit: float, whole: bool) -> None:
        offset = self.model.start_offset + round(fraction * (self.model.end_offset - self.model.start_offset))
        bounds = [0, *(batch.next_offset for batch in self.model.batches)]
        up_to = bounds[round(limit * (len(bounds) - 1))]
        found = self.log.read(offset, max_bytes, up_to_offset=up_to, min_one_batch=whole)
        expected = b"".join(
            batch.data for batch in self.model.batches if batch.next_offset > offset and batch.next_offset <= up_to
        )
        if found is None:
            assert not expected or (not whole and max_bytes == 0)
            return
        data = found.read()
        assert len(data) == found.length
        assert expected.startswith(data)
        first_size = read_header(expected).size_bytes
        assert len(data) <= max(max_bytes, first_size if whole else 0)
        assert not whole or whole_batches(data)
        self.check_told(offset, found, expected)

    @rule(delay=st.integers(-3000, 4000))
    def search_by_time(self, delay: int) -> None:
        target = START_MS + delay
        found = self.loop.run_until_complete(self.log.offset_for_timestamp(target))
        flat = [(b.first_offset + i, t) for b in self.model.batches for i, t in enumerate(b.timestamps)]
        start = self.model.start_offset
        expected = next(((offset, stamp) for offset, stamp in flat if stamp >= target and offset >= start), None)
        assert (found[:2] if found else None) == expected
        latest = self.loop.run_until_complete(self.log.offset_of_max_timestamp())
        # As in Kafka, the largest timestamp may be that of a record below the start, while its segment is there.
        flat = [(offset, stamp) for offset, stamp in flat if offset >= self.log.segments[0].base_offset]
        newest = max((stamp for _, stamp in flat), default=None)
        if newest is None:
            assert latest is None
        else:
            assert latest is not None
            assert latest[:2] == next(pair for pair in flat if pair[1] == newest)

    @rule(distance=st.integers(1, 5), below=st.booleans())
    def read_outside(self, distance: int, below: bool) -> None:
        offset = self.log.log_start_offset - distance if below else self.log.log_end_offset + distance
        with pytest.raises(KafkaError) as caught:
            self.log.read(offset, 100, up_to_offset=self.log.log_end_offset)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    # Always.

    @invariant()
    def holds_everything(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_start_offset == self.model.start_offset
            assert self.log.log_end_offset == self.model.end_offset
            assert read_all(self.log, 300) == self.model.content()

    @invariant()
    def open_files_are_bounded(self) -> None:
        if hasattr(self, "rig"):
            open_files = self.rig.memory_disk.open_files
            assert len(open_files) <= open_files.limit

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        if hasattr(self, "log"):
            model = self.model
            found = self.log.leader_epochs.entries()
            expected = model.epochs(max(model.start_offset, model.epochs_from))
            # A start forgets the epoch that no record is left of, or knows an older one, until a leader names it again.
            forgot = model.start_offset == model.end_offset and (
                not found or (len(found) == 1 and found[0][1] == model.start_offset and found < expected[-1:])
            )
            assert forgot or found == expected

    @invariant()
    def indexes_point_at_batches(self) -> None:
        if not hasattr(self, "log"):
            return
        for segment in self.log.segments:
            starts = {}
            data = segment.file.read_at(0, segment.size_bytes)
            position = 0
            while position < len(data):
                header = read_header(data, position)
                starts[position] = header
                position += header.size_bytes
            offsets, times = segment.indexes()
            assert list(offsets.positions) == sorted(set(offsets.positions))
            for relative, place in zip(offsets.relative_offsets, offsets.positions, strict=True):
                assert starts[place].last_offset == segment.base_offset + relative
            assert list(times.timestamps) == sorted(set(times.timestamps))
            for stamp, relative in zip(times.timestamps, times.relative_offsets, strict=True):
                before = [h.max_timestamp for h in starts.values() if h.last_offset < segment.base_offset + relative]
                own = [h for h in starts.values() if h.last_offset == segment.base_offset + relative]
                assert [h.max_timestamp for h in own] == [stamp]
                assert all(other < stamp for other in before)
            assert len(read_records(data)) == sum(header.record_count for header in starts.values())


LogMachine.TestCase.settings = settings(
    max_examples=examples(60),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLogModel = LogMachine.TestCase
