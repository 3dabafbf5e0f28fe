"""A partition and its transactions: what readers of committed records see and wait for, and what the broker writes."""

import asyncio

import pytest
from tests.unit.replication.rig import NODE_ID, Rig, append, appended, image, turns

from ottla.log.append_info import AppendInfo
from ottla.log.config import LogConfig
from ottla.log.verification import UNVERIFIED
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import ControlType, EndTransactionMarker, Record, build_batch, build_end_transaction, read_records
from ottla.replication.partition import Partition
from ottla.replication.waiting import FetchWait

PRODUCER = 7
NOW_MS = 1_700_000_000_000


def transactional(value: bytes, sequence: int, producer_id: int = PRODUCER) -> memoryview:
    batch = build_batch(
        [Record(0, NOW_MS, b"key", value, [])],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    return memoryview(bytearray(batch))


def write(partition: Partition, value: bytes, sequence: int, producer_id: int = PRODUCER) -> AppendInfo:
    info = partition.append(transactional(value, sequence, producer_id), -1, UNVERIFIED)
    assert isinstance(info, AppendInfo)
    return info


def marker(commit: bool, producer_id: int = PRODUCER) -> memoryview:
    end = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, 0)
    batch = build_end_transaction(end, producer_id=producer_id, producer_epoch=0, timestamp=NOW_MS)
    return memoryview(bytearray(batch))


def end(partition: Partition, *, commit: bool, producer_id: int = PRODUCER) -> AppendInfo:
    info = partition.append_own(marker(commit, producer_id))
    assert isinstance(info, AppendInfo)
    return info


def committed(partition: Partition, offset: int = 0) -> tuple[list[bytes | None], list[tuple[int, int]]]:
    """What a reader is given, with control records and aborted ones, and which it has to leave out."""
    found, aborted = partition.read_committed(offset, 1 << 20, min_one_batch=True)
    values = [] if found is None else [record.value for record in read_records(found.read())]
    return values, [(each.producer_id, each.first_offset) for each in aborted]


def test_committed_records_are_read_up_to_the_stable_offset() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        appended(partition, b"plain")
        write(partition, b"open", 0)
        appended(partition, b"behind")
        assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)
        assert committed(partition) == ([b"plain"], [])
        assert committed(partition, 2) == ([], [])
        end(partition, commit=False)
        values, aborted = committed(partition)
        assert values[:3] == [b"plain", b"open", b"behind"]
        assert aborted == [(PRODUCER, 1)]
        assert committed(partition, 2)[1] == [(PRODUCER, 1)], "a reader may begin in the middle of it"
        assert partition.last_stable_offset == 4

    asyncio.run(scenario())


def test_a_marker_counts_when_all_replicas_have_it() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(isr=(NODE_ID, 2))
        write(partition, b"in", 0)
        end(partition, commit=True)
        partition._follower_end_offsets[2] = 1
        partition.apply(image(isr=(NODE_ID, 2)))
        assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
        partition._follower_end_offsets[2] = 2
        partition.apply(image(isr=(NODE_ID, 2)))
        assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)

    asyncio.run(scenario())


@pytest.mark.parametrize("commit", [True, False])
def test_who_waits_for_committed_records_is_woken_by_the_marker(commit: bool) -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        write(partition, b"open", 0)
        wait = FetchWait([partition], 1, 60, True)
        eager = FetchWait([partition], 1, 60)
        assert partition.waiting_fetches == 2
        write(partition, b"more", 1)
        assert eager.over.done()
        assert not wait.over.done(), "nothing was decided"
        end(partition, commit=commit)
        assert wait.over.done()
        await turns()
        assert partition.waiting_fetches == 0

    asyncio.run(scenario())


def test_a_wait_counts_the_bytes_that_became_stable() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        sizes = [partition.log.size_bytes]
        for number, producer_id in enumerate((1, 2)):
            write(partition, b"open", 0, producer_id)
            sizes.append(partition.log.size_bytes)
            assert sizes[number + 1] > sizes[number]
        wait = FetchWait([partition], sizes[1] + 1, 60, True)
        end(partition, commit=True, producer_id=1)
        assert not wait.over.done(), "the other one is open still: one batch became stable"
        appended(partition, b"plain")
        assert not wait.over.done()
        end(partition, commit=True, producer_id=2)
        assert wait.over.done()

    asyncio.run(scenario())


def test_waits_for_committed_records_end_with_the_leadership() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        write(partition, b"open", 0)
        wait = FetchWait([partition], 1, 60, True)
        partition.apply(image(leader=2, epoch=1))
        assert wait.over.done()

    asyncio.run(scenario())


def test_the_first_batch_of_a_transaction_needs_a_verification() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        with pytest.raises(KafkaError) as caught:
            partition.append(transactional(b"late", 0), -1)
        assert caught.value.code == ErrorCode.INVALID_TXN_STATE
        verifications = partition.log.producer_state.verifications
        verification = verifications.begin(PRODUCER, 0, 0, begins_at_zero=True, now_ms=0)
        assert isinstance(partition.append(transactional(b"first", 0), -1, verification), AppendInfo)
        assert isinstance(partition.append(transactional(b"second", 1), -1), AppendInfo)

    asyncio.run(scenario())


def test_what_waits_for_a_roll_keeps_its_permit() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(LogConfig(segment_bytes=250))
        appended(partition, b"v" * 150)
        rig.executor.holds = True
        verifications = partition.log.producer_state.verifications
        verification = verifications.begin(PRODUCER, 0, 0, begins_at_zero=True, now_ms=0)
        first = partition.append(transactional(b"v" * 60, 0), -1, verification)
        assert isinstance(first, asyncio.Future)
        ended = partition.append_own(marker(commit=False))
        assert isinstance(ended, asyncio.Future)
        late = partition.append(transactional(b"late", 1), -1, verification)
        assert isinstance(late, asyncio.Future)
        rig.executor.release()
        assert (await first).first_offset == 1
        assert (await ended).first_offset == 2
        with pytest.raises(KafkaError) as caught:
            await late
        assert caught.value.code == ErrorCode.INVALID_TXN_STATE, "the marker came before"
        assert committed(partition, 1)[1] == [(PRODUCER, 1)]

    asyncio.run(scenario())


def test_what_a_coordinator_writes_in_a_transaction_is_part_of_it() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        batch = build_batch(
            [Record(0, NOW_MS, b"k", b"offset", [])],
            producer_id=PRODUCER,
            producer_epoch=3,
            base_sequence=-1,
            transactional=True,
        )
        for _ in range(2):
            assert isinstance(partition.append_own(memoryview(bytearray(batch))), AppendInfo)
        assert partition.last_stable_offset == 0
        with pytest.raises(KafkaError) as caught:
            partition.append_own(marker(commit=True))
        assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH, "an epoch from before"
        assert isinstance(append(partition, b"plain"), AppendInfo)

    asyncio.run(scenario())
