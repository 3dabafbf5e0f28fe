"""Compaction and transactions: what was aborted goes, markers stay as long as they are needed, and so do epochs."""

import asyncio

import pytest
from tests.unit.log.compacting import CompactingRig, Pair, keyed_batch
from tests.unit.log.support import append, end_transaction, read_all

from ottla.log.transaction_index import AbortedTransaction
from ottla.records import BatchHeader, Codec, scan_headers

RETENTION_MS = 1000


class TransactionalRig(CompactingRig):
    """Producers whose transactions end with an epoch of their own, as in the second version of the protocol."""

    def __init__(self) -> None:
        super().__init__(delete_retention_ms=RETENTION_MS)
        self.epochs: dict[int, int] = {}
        self.sequences: dict[int, int] = {}

    async def write_in(self, producer_id: int, *pairs: Pair, codec: Codec = Codec.NONE) -> int:
        sequence = self.sequences.get(producer_id, 0)
        batch = keyed_batch(
            pairs,
            self.clock.now_ms(),
            codec,
            producer_id,
            sequence,
            transactional=True,
            epoch=self.epochs.get(producer_id, 0),
        )
        self.sequences[producer_id] = sequence + len(pairs)
        info = await append(self.log, batch, now_ms=self.clock.now_ms())
        self.replicate()
        return info.first_offset

    async def end(self, producer_id: int, *, commit: bool, bump: bool = False) -> int:
        if bump:
            self.epochs[producer_id] = self.epochs.get(producer_id, 0) + 1
            self.sequences[producer_id] = 0
        info = await end_transaction(
            self.log,
            producer_id,
            commit=commit,
            producer_epoch=self.epochs.get(producer_id, 0),
            transaction_version=2 if bump else 0,
            timestamp=self.clock.now_ms(),
        )
        self.replicate()
        return info.first_offset

    async def dirty(self) -> None:
        """Something that another compaction has to do."""
        await self.write((b"other", b"x"))

    def headers(self) -> list[BatchHeader]:
        return scan_headers(read_all(self.log))

    def markers(self) -> dict[int, int]:
        """Records of each control batch, by offset."""
        return {header.base_offset: header.record_count for header in self.headers() if header.is_control}

    def aborted(self) -> list[AbortedTransaction]:
        return [each for segment in self.log.segments for each in segment.transactions()]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_committed_records_hide_older_ones_and_aborted_ones_do_not(codec: Codec) -> None:
    async def run() -> None:
        rig = TransactionalRig()
        await rig.open()
        await rig.write((b"a", b"old"), (b"b", b"old"))
        await rig.write_in(1, (b"a", b"committed"), codec=codec)
        await rig.write_in(2, (b"b", b"aborted"), codec=codec)
        await rig.end(1, commit=True)
        await rig.end(2, commit=False)
        await rig.clean()
        values = [record.value for record in rig.records() if record.key in (b"a", b"b")]
        assert values == [b"old", b"committed"]
        await rig.manager.shutdown()

    asyncio.run(run())


def test_an_open_transaction_stops_the_cleaner() -> None:
    async def run() -> None:
        rig = TransactionalRig()
        await rig.open()
        await rig.write((b"k", b"1"))
        await rig.write((b"k", b"2"))
        await rig.log.roll()
        await rig.write_in(9, (b"k", b"3"))
        await rig.write((b"k", b"4"))
        await rig.clean()
        assert rig.offsets() == [1, 2, 3]
        await rig.end(9, commit=True)
        await rig.clean()
        assert [offset for offset in rig.offsets() if offset < 4] == [3]
        await rig.manager.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_goes_after_its_batches_and_its_time(commit: bool) -> None:
    async def run() -> None:
        rig = TransactionalRig()
        await rig.open()
        first = await rig.write_in(1, (b"k", b"in"))
        marker = await rig.end(1, commit=commit)
        await rig.write((b"k", b"after"))
        # So that neither batch has the last that is known of its producer.
        await rig.write_in(1, (b"z", b"later"))
        await rig.end(1, commit=True)
        await rig.clean()
        assert rig.markers()[marker] == 1, "a batch of it was there"
        assert first not in rig.offsets()
        assert bool(rig.aborted()) is not commit
        await rig.dirty()
        await rig.clean()
        assert rig.markers()[marker] == 1, "its time begins"
        (header,) = [header for header in rig.headers() if header.base_offset == marker]
        assert header.attributes & 0x40
        assert header.base_timestamp == rig.clock.now_ms() + RETENTION_MS
        assert rig.aborted() == []
        rig.clock.advance(RETENTION_MS)
        await rig.dirty()
        await rig.clean()
        assert marker not in rig.markers()
        await rig.restart()
        assert marker not in rig.markers()
        await rig.manager.shutdown()

    asyncio.run(run())


def test_the_last_marker_of_a_producer_stays_as_an_empty_batch() -> None:
    async def run() -> None:
        rig = TransactionalRig()
        await rig.open()
        await rig.write_in(1, (b"k", b"in"))
        marker = await rig.end(1, commit=False, bump=True)
        for _ in range(3):
            await rig.dirty()
            await rig.clean()
            rig.clock.advance(RETENTION_MS)
        assert rig.markers()[marker] == 0
        assert rig.log.producer_state.producers[1].epoch == 1
        # Written by a broker that has lost its snapshots, the state is what the log says.
        await rig.manager.shutdown()
        for name in rig.names():
            if name.endswith(".snapshot"):
                rig.disk.delete(f"{rig.log_path}/{name}")
        await rig.open()
        assert 1 not in rig.log.producer_state.producers, "an empty batch has no marker to be read, as in Kafka"
        await rig.manager.shutdown()

    asyncio.run(run())


def test_a_transaction_whose_marker_is_above_what_is_cleaned_is_known_to_be_aborted() -> None:
    async def run() -> None:
        rig = TransactionalRig()
        await rig.open()
        await rig.write((b"k", b"kept"))
        await rig.write_in(1, (b"k", b"aborted"))
        await rig.log.roll()
        await rig.write_in(2, (b"other", b"open"))
        await rig.end(1, commit=False)
        await rig.clean()
        assert [record.value for record in rig.records() if record.key == b"k"] == [b"kept"]
        await rig.manager.shutdown()

    asyncio.run(run())
