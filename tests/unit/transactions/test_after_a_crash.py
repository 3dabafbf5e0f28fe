"""What was decided before a crash is carried out after it, and nothing else."""

import asyncio

import pytest
from tests.unit.replication.rig import turns
from tests.unit.transactions.stage import NAME, VERSIONS, A, B, Stage, refusal

from ottla.protocol.errors import ErrorCode
from ottla.transactions import Status


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_decided_transaction_goes_on_by_itself(version: int, is_commit: bool) -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A, B, version=version)
        stage.markers.holds = True
        after = await stage.end(producer, commit=is_commit, version=version)
        assert stage.markers.written == []
        stage.markers.holds = False
        await stage.restart()
        assert stage.status() is (Status.COMPLETE_COMMIT if is_commit else Status.COMPLETE_ABORT)
        assert stage.markers.of(A) == stage.markers.of(B) == [(after, is_commit)]
        await stage.add(after, A)

    asyncio.run(scenario())


def test_a_crash_between_two_markers_writes_the_rest() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A, B)
        stage.markers.refuse = {B: ErrorCode.NOT_ENOUGH_REPLICAS}
        after = await stage.commit(producer)
        assert (stage.markers.of(A), stage.markers.of(B)) == ([(after, True)], [])
        stage.markers.refuse = {}
        await stage.restart()
        # A has its marker twice: partitions take the second as a repetition.
        assert (stage.markers.of(A), stage.markers.of(B)) == ([(after, True)] * 2, [(after, True)])
        assert stage.status() is Status.COMPLETE_COMMIT

    asyncio.run(scenario())


def test_what_was_not_decided_stays_open() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A)
        await stage.restart()
        assert stage.status() is Status.ONGOING
        assert stage.markers.written == []
        await stage.add(producer, B)
        after = await stage.commit(producer)
        assert stage.markers.of(A) == stage.markers.of(B) == [(after, True)]

    asyncio.run(scenario())


def test_the_answer_that_was_lost_is_given_again() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A)
        after = await stage.commit(producer)
        await stage.restart()
        assert await stage.commit(producer) == after
        assert await refusal(stage.abort(producer)) == ErrorCode.INVALID_TXN_STATE

    asyncio.run(scenario())


def test_a_repeated_initialization_is_not_known_after_a_crash() -> None:
    """Kafka does not write that epoch either: the producer is fenced rather than believed."""

    async def scenario() -> None:
        stage = await Stage().start()
        first = await stage.initialize()
        await stage.initialize(expected=first)
        await stage.restart()
        assert await refusal(stage.initialize(expected=first)) == ErrorCode.PRODUCER_FENCED

    asyncio.run(scenario())


def test_a_timeout_counts_from_the_beginning_of_the_transaction() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A)
        stage.clock.advance(50_000)
        await stage.restart()
        stage.clock.advance(10_001)
        await stage.coordinator.abort_timed_out()
        await turns()
        assert stage.status() is Status.COMPLETE_ABORT

    asyncio.run(scenario())


def test_who_waits_is_told_when_the_broker_lets_go() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A)
        stage.markers.holds = True
        after = await stage.commit(producer)
        waiting = stage.coordinator.verify(NAME, *after, *B, adds=True)
        assert waiting is not None
        stage.coordinator.stop()
        assert getattr(waiting.exception(), "code", None) == ErrorCode.NOT_COORDINATOR
        stage.markers.release()
        await turns()
        assert stage.coordinator.topic.partition_count == 3

    asyncio.run(scenario())
