"""Appends in order, also while a segment is being rolled; leadership; stopping."""

import asyncio
import errno

import pytest
from tests.unit.replication.rig import Rig, append, appended, batch, image, queued, turns, visible

from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.records import read_header

# Room for two batches of a few bytes, not for three.
SMALL_SEGMENTS = LogConfig(segment_bytes=2 * len(batch(b"00")) + 10)


def code_of(error: BaseException | None) -> ErrorCode:
    assert isinstance(error, KafkaError)
    return error.code


def test_appends_take_effect_at_once() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        infos = [appended(partition, b"%d" % number) for number in range(5)]
        assert [(info.first_offset, info.last_offset) for info in infos] == [(n, n) for n in range(5)]
        assert partition.high_watermark == 5
        assert visible(partition) == [b"%d" % number for number in range(5)]

    asyncio.run(scenario())


def test_nothing_overtakes_a_roll() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        for value in (b"00", b"01"):
            appended(partition, value)
        rig.executor.holds = True
        waiting = [queued(partition, b"%02d" % number) for number in range(2, 9)]
        await turns()
        assert rig.executor.holding, "the roll must be under way"
        assert not any(future.done() for future in waiting)
        assert partition.log.log_end_offset == 2
        rig.executor.release()
        infos = [await future for future in waiting]
        assert [info.first_offset for info in infos] == list(range(2, 9))
        assert visible(partition) == [b"%02d" % number for number in range(9)]

    asyncio.run(scenario())


def test_what_comes_when_the_roll_is_done_but_the_queue_is_not_waits_its_turn() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        appended(partition, b"01")
        rig.executor.holds = True
        first = queued(partition, b"02")
        late: list[asyncio.Future[object]] = []
        first.add_done_callback(lambda _: late.append(asyncio.ensure_future(finish(b"04"))))
        second = queued(partition, b"03")

        async def finish(value: bytes) -> object:
            answer = append(partition, value)
            return await answer if isinstance(answer, asyncio.Future) else answer

        await turns()
        rig.executor.release()
        await first
        await second
        await turns()
        await late[0]
        assert visible(partition) == [b"%02d" % number for number in range(5)]

    asyncio.run(scenario())


def test_appends_are_direct_again_after_a_roll() -> None:
    async def scenario() -> None:
        partition = await Rig().partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        appended(partition, b"01")
        await queued(partition, b"02")
        await turns()
        appended(partition, b"03")
        assert partition.high_watermark == 4

    asyncio.run(scenario())


@pytest.mark.parametrize("rewriting", [{"message_timestamp_type": "LogAppendTime"}, {"compression_type": "lz4"}])
def test_batches_that_are_rewritten_are_rewritten_once(rewriting: dict[str, str]) -> None:
    async def scenario() -> None:
        rig = Rig()
        config = LogConfig(
            segment_bytes=SMALL_SEGMENTS.segment_bytes,
            message_timestamp_type=rewriting.get("message_timestamp_type", "CreateTime"),
            compression_type=rewriting.get("compression_type", "producer"),
        )
        partition = await rig.partition(config)
        for number in range(10):
            answer = append(partition, b"%02d" % number)
            if isinstance(answer, asyncio.Future):
                await answer
        assert len(partition.log.segments) > 2
        assert visible(partition) == [b"%02d" % number for number in range(10)]

    asyncio.run(scenario())


def test_a_bad_batch_in_the_queue_is_refused_alone() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        appended(partition, b"01")
        rig.executor.holds = True
        good = queued(partition, b"02")
        corrupt = batch(b"xx")
        corrupt[-1] ^= 1
        bad = partition.append(memoryview(corrupt), 1)
        assert isinstance(bad, asyncio.Future)
        also_good = queued(partition, b"03")
        rig.executor.release()
        assert (await good).first_offset == 2
        with pytest.raises(KafkaError) as caught:
            await bad
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        assert (await also_good).first_offset == 3

    asyncio.run(scenario())


def test_a_roll_that_fails_refuses_all_that_waits() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        appended(partition, b"01")
        rig.executor.holds = True
        waiting = [queued(partition, b"02"), queued(partition, b"03")]
        rig.directory.fail(OSError(errno.EIO, "the device does not answer"))
        rig.executor.release()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [code_of(result) for result in results if isinstance(result, BaseException)] == [
            ErrorCode.KAFKA_STORAGE_ERROR
        ] * 2

    asyncio.run(scenario())


# Leadership


def test_batches_carry_the_leaders_epoch() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        appended(partition, b"old")
        partition.apply(image(epoch=3))
        appended(partition, b"new")
        stored = partition.read(1, 1 << 20, min_one_batch=True)
        assert stored is not None
        assert read_header(stored.read()).partition_leader_epoch == 3
        assert partition.log.leader_epochs.end_offset_for(0) == (0, 1)
        assert partition.log.leader_epochs.end_offset_for(3) == (3, 2)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("believed", "code"),
    [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_epochs_of_clients_are_checked(believed: int, code: ErrorCode | None) -> None:
    async def scenario() -> ErrorCode | None:
        partition = await Rig().partition()
        partition.apply(image(epoch=5))
        try:
            partition.check_leader(believed)
        except KafkaError as error:
            return error.code
        return None

    assert asyncio.run(scenario()) == code


def test_who_does_not_lead_takes_nothing() -> None:
    async def scenario() -> None:
        partition = await Rig().partition()
        partition.apply(image(leader=2, epoch=1, isr=(1, 2)))
        with pytest.raises(KafkaError) as caught:
            append(partition, b"value")
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert partition.log.log_end_offset == 0

    asyncio.run(scenario())


def test_who_loses_the_lead_during_a_roll_takes_nothing_more() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        appended(partition, b"01")
        rig.executor.holds = True
        waiting = [queued(partition, b"02"), queued(partition, b"03")]
        await turns()
        partition.apply(image(leader=2, epoch=1, isr=(1, 2)))
        rig.executor.release()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [code_of(result) for result in results if isinstance(result, BaseException)] == [
            ErrorCode.NOT_LEADER_OR_FOLLOWER
        ] * 2
        assert partition.log.log_end_offset == 2

    asyncio.run(scenario())


def test_stopping_ends_what_waits() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(SMALL_SEGMENTS)
        appended(partition, b"00")
        appended(partition, b"01")
        rig.executor.holds = True
        waiting = queued(partition, b"02")
        await turns()
        stopping = asyncio.create_task(partition.stop())
        await turns()
        assert not stopping.done(), "the roll is still under way"
        rig.executor.release()
        await stopping
        assert code_of(waiting.exception()) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(scenario())


def test_nothing_overtakes_a_batch_that_is_compressed_again_beside_the_loop() -> None:
    async def scenario() -> None:
        rig = Rig()
        partition = await rig.partition(LogConfig(compression_type="gzip"))
        rig.executor.holds = True
        waiting = [queued(partition, b"%02d" % number) for number in range(3)]
        await turns()
        assert rig.executor.holding, "the loop must not be the one that compresses"
        assert partition.log.log_end_offset == 0
        rig.executor.release()
        infos = [await future for future in waiting]
        assert [info.first_offset for info in infos] == [0, 1, 2]
        assert visible(partition) == [b"00", b"01", b"02"]

    asyncio.run(scenario())
