"""A compacted log against a plain list: the latest value of every key stays, nothing else appears, order is kept."""

import asyncio
import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.property.examples import examples
from tests.unit.log.compacting import CompactingRig, keyed_batch
from tests.unit.log.fragile import FragileDisk, end_tasks
from tests.unit.log.support import append, end_transaction, read_all

from ottla.log.cleaner import CleanerSettings
from ottla.records import Codec, Record, scan_headers

KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"d" * 40])
VALUES = st.one_of(st.none(), st.binary(max_size=30))
# The largest batch that is written, five records of the longest key and value, fits the smallest of these.
SEGMENT_BYTES = (520, 800, 4000)
RETENTION_MS = 1000
PRODUCERS = (7, 8)
WRITERS = (21, 22)
MARKER = (b"a marker", None)
EXAMPLES = examples(60)


class CompactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.written: list[tuple[bytes, bytes | None]] = []
        self.sequences: dict[int, int] = {}
        self.flushed = 0
        # Offsets of records whose transactions are open, by producer, and of those that were aborted.
        self.undecided: dict[int, list[int]] = {}
        self.aborted: set[int] = set()

    @initialize(
        segment_bytes=st.sampled_from(SEGMENT_BYTES),
        slots=st.sampled_from([3, 8, 50_000]),
        open_files=st.sampled_from([1, 3, 4096]),
    )
    def open(self, segment_bytes: int, slots: int, open_files: int) -> None:
        self.disk = FragileDisk()
        self.rig = CompactingRig(disk=self.disk, segment_bytes=segment_bytes, delete_retention_ms=RETENTION_MS)
        self.rig.memory_disk = self.disk
        self.rig.settings = CleanerSettings(dedupe_buffer_bytes=24 * slots)
        self.rig.memory_disk.open_files.limit = open_files
        self.loop.run_until_complete(self.rig.open())

    def teardown(self) -> None:
        self.loop.run_until_complete(self.rig.manager.shutdown())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    @rule(
        pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.SNAPPY]),
        producer_id=st.sampled_from([-1, -1, *PRODUCERS]),
    )
    def write(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int) -> None:
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        work = self.rig.write(*pairs, codec=codec, producer_id=producer_id, sequence=sequence)
        assert self.loop.run_until_complete(work) == len(self.written)
        self.written += pairs
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(pairs)

    @rule(
        pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
        producer_id=st.sampled_from(WRITERS),
    )
    def write_in_a_transaction(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int) -> None:
        sequence, offset = self.sequences.get(producer_id, 0), len(self.written)
        batch = keyed_batch(pairs, self.rig.clock.now_ms(), codec, producer_id, sequence, transactional=True)
        info = self.loop.run_until_complete(append(self.rig.log, batch, now_ms=self.rig.clock.now_ms()))
        assert info.first_offset == offset
        self.rig.replicate()
        self.written += pairs
        self.sequences[producer_id] = sequence + len(pairs)
        self.undecided.setdefault(producer_id, []).extend(range(offset, offset + len(pairs)))

    @rule(producer_id=st.sampled_from(WRITERS), commit=st.booleans())
    def end_a_transaction(self, producer_id: int, commit: bool) -> None:
        if producer_id in self.undecided:
            now_ms = self.rig.clock.now_ms()
            self.loop.run_until_complete(end_transaction(self.rig.log, producer_id, commit=commit, timestamp=now_ms))
            self.rig.replicate()
            offsets = self.undecided.pop(producer_id)
            self.written.append(MARKER)
            if not commit:
                self.aborted.update(offsets)

    def _latest(self) -> dict[bytes, int]:
        """The last offset of each key that counts, as far as that is decided."""
        undecided = {offset for offsets in self.undecided.values() for offset in offsets}
        return {
            pair[0]: offset
            for offset, pair in enumerate(self.written)
            if pair is not MARKER and offset not in self.aborted and offset not in undecided
        }

    def _records(self) -> list[Record]:
        return [record for record in self.rig.records() if self.written[record.offset] is not MARKER]

    @rule()
    def clean(self) -> None:
        for number, producer_id in enumerate(WRITERS):
            self.end_a_transaction(producer_id, number == 0)
        self.loop.run_until_complete(self.rig.clean())
        latest = self._latest()
        for record in self._records():
            assert record.key is not None
            assert latest[record.key] == record.offset, "only the last record of a key stays"
        self.flushed = self.rig.log.flushed_offset

    @rule(count=st.integers(1, 5))
    def evict(self, count: int) -> None:
        """Files lose their descriptors: nobody must notice."""
        self.rig.memory_disk.open_files.evict(count)

    @rule(milliseconds=st.sampled_from([1, RETENTION_MS - 1, RETENTION_MS]))
    def wait(self, milliseconds: int) -> None:
        self.rig.clock.advance(milliseconds)

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.rig.restart())
        assert self.rig.log.log_end_offset == len(self.written)

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.loop.run_until_complete(self.rig.log.flush())
        self.loop.run_until_complete(self.rig.crash(random.Random(seed).randrange))
        assert self.rig.log.log_end_offset == len(self.written)

    @rule(calls=st.integers(0, 60), seed=st.integers(0, 2**32))
    def crash_while_cleaning(self, calls: int, seed: int) -> None:
        """At any call to the disk; and once more, at any call of the start that follows."""
        self.loop.run_until_complete(self.rig.log.flush())
        with self.disk.cut_after(calls):
            self.loop.run_until_complete(self.rig.clean())
        self._start_again(seed, calls // 2)
        self._start_again(seed + 1, None)

    def _start_again(self, seed: int, calls: int | None) -> None:
        self.rig.manager.removals.close()
        end_tasks(self.loop)
        self.disk.power_on()
        if calls is None:
            self.loop.run_until_complete(self.rig.crash(random.Random(seed).randrange))
            assert self.rig.log.log_end_offset == len(self.written)
        else:
            self.disk.crash(random.Random(seed).randrange)
            with self.disk.cut_after(calls):
                self.loop.run_until_complete(self.rig.open())

    def _expect_record(self, record: Record) -> None:
        assert self.written[record.offset] == (record.key, record.value)

    @invariant()
    def holds_the_latest_of_every_key(self) -> None:
        if not hasattr(self, "rig"):
            return
        records = self._records()
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        for record in records:
            self._expect_record(record)
        assert {offset for own in self.undecided.values() for offset in own} <= set(offsets)
        missing = {offset for offset in self._latest().values() if offset not in offsets}
        assert all(self.written[offset][1] is None for offset in missing), "only a tombstone may go for good"

    @invariant()
    def sequences_survive(self) -> None:
        if hasattr(self, "rig"):
            producers = self.rig.log.producer_state.producers
            assert {name: entry.last_sequence + 1 for name, entry in producers.items()} == self.sequences

    @invariant()
    def every_offset_leads_on(self) -> None:
        if hasattr(self, "rig"):
            headers = scan_headers(read_all(self.rig.log))
            log = self.rig.log
            for offset in range(log.log_end_offset):
                found = log.read(offset, 1, up_to_offset=log.log_end_offset)
                after = [header for header in headers if header.last_offset >= offset]
                assert (found is None) == (not after)
                if found is not None:
                    assert scan_headers(found.read(), True)[0] == after[0]


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
