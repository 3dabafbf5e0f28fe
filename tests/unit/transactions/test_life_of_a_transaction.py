"""From the first InitProducerId to the record that all is done: what producers are told and what is written."""

import asyncio

import pytest
from tests.unit.replication.rig import turns
from tests.unit.transactions.stage import NAME, TIMEOUT_MS, VERSIONS, A, B, C, Stage, eventually, refusal

from ottla.protocol.errors import ErrorCode
from ottla.transactions import Status, TopicPartition, TransactionSettings
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION


def test_a_producer_commits_and_goes_on_with_the_next_epoch() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        first = await stage.initialize()
        assert first[1] == 0
        await stage.add(first, A)
        await stage.add(first, B, C)
        assert stage.status() is Status.ONGOING
        second = await stage.commit(first)
        assert second == (first[0], 1)
        assert stage.status() is Status.COMPLETE_COMMIT
        assert stage.transaction().partitions == frozenset()
        # The marker has the new epoch, so that a late batch of the old one is refused.
        assert {each: stage.markers.of(each) for each in (A, B, C)} == {each: [(second, True)] for each in (A, B, C)}
        await stage.add(second, A)
        third = await stage.abort(second)
        assert third == (first[0], 2)
        assert stage.status() is Status.COMPLETE_ABORT
        assert stage.markers.of(A) == [(second, True), (third, False)]

    asyncio.run(scenario())


def test_an_older_producer_keeps_its_epoch() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        for is_commit in (True, False, True):
            await stage.add(producer, A, version=FIRST_VERSION)
            assert await stage.end(producer, commit=is_commit, version=FIRST_VERSION) == producer
        assert stage.markers.of(A) == [(producer, True), (producer, False), (producer, True)]

    asyncio.run(scenario())


def test_the_next_producer_fences_the_one_before() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        old = await stage.initialize()
        new = await stage.initialize()
        assert new == (old[0], old[1] + 1)
        assert await refusal(stage.add(old, A)) == ErrorCode.PRODUCER_FENCED
        assert await refusal(stage.commit(old, FIRST_VERSION)) == ErrorCode.PRODUCER_FENCED
        assert await refusal(stage.verify(old, A, adds=True)) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await refusal(stage.verify(old, A, adds=False)) == ErrorCode.INVALID_PRODUCER_EPOCH
        stranger = (new[0] + 1, new[1])
        for work in (stage.add(stranger, A), stage.commit(stranger), stage.verify(stranger, A, adds=True)):
            assert await refusal(work) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        await stage.add(new, A)

    asyncio.run(scenario())


def test_the_next_producer_aborts_what_was_left_open() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        old = await stage.initialize()
        await stage.add(old, A)
        assert await refusal(stage.initialize()) == ErrorCode.CONCURRENT_TRANSACTIONS
        assert stage.status() is Status.COMPLETE_ABORT
        assert stage.markers.of(A) == [((old[0], old[1] + 1), False)]
        assert await stage.initialize() == (old[0], old[1] + 2)

    asyncio.run(scenario())


def test_a_repeated_initialization_is_known_by_its_epoch() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        first = await stage.initialize()
        second = await stage.initialize(expected=first)
        assert second == (first[0], 1)
        assert await stage.initialize(expected=first) == second, "the answer was lost and is given again"
        assert await stage.initialize(expected=second) == (first[0], 2)
        assert await refusal(stage.initialize(expected=first)) == ErrorCode.PRODUCER_FENCED
        assert await refusal(stage.initialize(expected=(first[0] + 5, 2))) == ErrorCode.PRODUCER_FENCED
        await stage.initialize()
        assert await refusal(stage.initialize(expected=second)) == ErrorCode.PRODUCER_FENCED

    asyncio.run(scenario())


def test_an_unknown_producer_may_begin_anew() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer_id, epoch = await stage.initialize(expected=(77, 7))
        assert (producer_id != 77, epoch) == (True, 0)

    asyncio.run(scenario())


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_must_be_allowed(timeout_ms: int) -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        assert await refusal(stage.initialize(timeout_ms=timeout_ms)) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        await stage.initialize(timeout_ms=900_000)

    asyncio.run(scenario())


def test_nothing_goes_without_an_id() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = (1, 1)
        for work in (
            stage.initialize(""),
            stage.add(producer, A, name=""),
            stage.end(producer, commit=True, name=""),
            stage.verify(producer, A, adds=True, name=""),
            stage.verify(producer, A, adds=False, name=""),
        ):
            assert await refusal(work) == ErrorCode.INVALID_REQUEST

    asyncio.run(scenario())


def test_nobody_coordinates_while_there_is_no_topic() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        await stage.with_topics({"a": 1})
        stage.coordinator.follow(stage.image)
        assert await refusal(stage.initialize()) == ErrorCode.NOT_COORDINATOR
        assert await refusal(stage.verify((1, 1), A, adds=True)) == ErrorCode.NOT_COORDINATOR

    asyncio.run(scenario())


def test_a_partition_is_added_by_writing_to_it() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        assert await refusal(stage.verify(producer, A, adds=False)) == ErrorCode.TRANSACTION_ABORTABLE
        await stage.verify(producer, A, adds=True)
        assert stage.coordinator.verify(NAME, *producer, *A, adds=True) is None
        assert stage.coordinator.verify(NAME, *producer, *A, adds=False) is None
        await stage.verify(producer, B, adds=True)
        assert stage.transaction().partitions == {A, B}
        producer = await stage.commit(producer)
        assert stage.markers.of(A) == stage.markers.of(B) == [(producer, True)]
        assert await refusal(stage.verify(producer, A, adds=False)) == ErrorCode.TRANSACTION_ABORTABLE
        assert stage.coordinator.failed_verifications == 2

    asyncio.run(scenario())


def test_who_writes_too_early_waits_for_the_end_of_the_transaction_before() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        first = await stage.initialize()
        await stage.add(first, A)
        stage.markers.holds = True
        second = await stage.commit(first)
        waiting = stage.coordinator.verify(NAME, *second, *B, adds=True)
        assert waiting is not None
        assert not waiting.done()
        stage.markers.release()
        await turns()
        assert waiting.exception() is None
        assert stage.status() is Status.ONGOING
        assert stage.transaction().partitions == {B}

    asyncio.run(scenario())


def test_who_waits_for_too_long_is_told_to_come_again() -> None:
    async def scenario() -> None:
        stage = await Stage(settings=TransactionSettings(verification_wait_ms=1)).start()
        first = await stage.initialize()
        await stage.add(first, A)
        stage.markers.holds = True
        second = await stage.commit(first)
        waiting = stage.coordinator.verify(NAME, *second, *B, adds=True)
        assert waiting is not None
        told = asyncio.Event()
        waiting.add_done_callback(lambda _: told.set())
        await told.wait()
        assert getattr(waiting.exception(), "code", None) == ErrorCode.CONCURRENT_TRANSACTIONS

    asyncio.run(scenario())


@pytest.mark.parametrize("version", VERSIONS)
def test_everybody_waits_while_a_transaction_ends(version: int) -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A, version=version)
        stage.markers.holds = True
        after = await stage.commit(producer, version)
        assert stage.status() is Status.PREPARE_COMMIT
        for work in (
            stage.initialize(),
            stage.initialize(expected=after),
            stage.add(after, A),
            stage.commit(after, version),
            stage.abort(after, version),
            stage.verify(after, A, adds=False),
        ):
            assert await refusal(work) == ErrorCode.CONCURRENT_TRANSACTIONS
        stage.markers.release()
        await turns()
        await stage.add(after, A)

    asyncio.run(scenario())


def test_markers_are_tried_until_every_partition_has_its_own() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A, B, C)
        stage.markers.refuse = {B: ErrorCode.NOT_ENOUGH_REPLICAS, C: ErrorCode.INVALID_PRODUCER_EPOCH}
        after = await stage.commit(producer)
        assert stage.status() is Status.PREPARE_COMMIT
        stage.markers.refuse = {}
        await eventually(lambda: not stage.machine().is_pending(NAME))
        assert stage.status() is Status.COMPLETE_COMMIT
        assert [stage.markers.of(each) for each in (A, B, C)] == [[(after, True)], [(after, True)], []]

    asyncio.run(scenario())


def test_a_deleted_topic_needs_no_marker() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A, B)
        await stage.with_topics({"__transaction_state": 3, "b": 2})
        after = await stage.commit(producer)
        assert stage.status() is Status.COMPLETE_COMMIT
        assert [each for _, each in stage.markers.written] == [B]
        await stage.add(after, B)

    asyncio.run(scenario())


def test_a_transaction_of_many_partitions_gives_way() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        await stage.with_topics({"__transaction_state": 3, "a": 1, "b": 2, "wide": 100})
        wide = [TopicPartition("wide", index) for index in range(100)]
        producer = await stage.initialize()
        await stage.add(producer, *wide)
        await stage.commit(producer)
        assert stage.status() is Status.PREPARE_COMMIT
        assert 0 < len(stage.markers.written) < 100
        await turns(20)
        assert stage.status() is Status.COMPLETE_COMMIT
        assert [each for _, each in stage.markers.written] == wide

    asyncio.run(scenario())


def test_open_transactions_time_out() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        slow = await stage.initialize()
        await stage.add(slow, A)
        other = await stage.initialize("other", timeout_ms=TIMEOUT_MS * 2)
        await stage.add(other, B, name="other")
        idle = await stage.initialize("idle")
        stage.clock.advance(TIMEOUT_MS)
        await stage.coordinator.abort_timed_out()
        assert stage.status() is Status.ONGOING, "not yet"
        stage.clock.advance(1)
        await stage.coordinator.abort_timed_out()
        assert stage.status() is Status.COMPLETE_ABORT
        assert stage.markers.of(A) == [((slow[0], slow[1] + 1), False)]
        assert stage.status("other") is Status.ONGOING
        assert await refusal(stage.commit(slow)) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
        assert await refusal(stage.add(slow, A)) == ErrorCode.PRODUCER_FENCED
        await stage.add(idle, C, name="idle")

    asyncio.run(scenario())


def test_ids_expire() -> None:
    async def scenario() -> None:
        stage = await Stage(settings=TransactionSettings(transactional_id_expiration_ms=1000)).start()
        await stage.initialize()
        busy = await stage.initialize("busy")
        stage.clock.advance(600)
        await stage.add(busy, A, name="busy")
        stage.clock.advance(400)
        await stage.coordinator.expire()
        assert NAME not in stage.machine().transactions
        assert stage.status("busy") is Status.ONGOING
        stage.clock.advance(10_000)
        await stage.coordinator.expire()
        assert stage.status("busy") is Status.ONGOING, "an open transaction does not expire"
        await stage.restart()
        assert NAME not in stage.machine().transactions
        assert (await stage.initialize())[1] == 0

    asyncio.run(scenario())


def test_the_rounds_run_by_themselves() -> None:
    async def scenario() -> None:
        settings = TransactionSettings(
            transaction_abort_timed_out_transaction_cleanup_interval_ms=1,
            transaction_remove_expired_transaction_cleanup_interval_ms=1,
            transactional_id_expiration_ms=1000,
        )
        stage = await Stage(settings=settings).start()
        producer = await stage.initialize()
        await stage.add(producer, A)
        rounds = asyncio.ensure_future(stage.coordinator.run())
        stage.clock.advance(TIMEOUT_MS + 1)
        await eventually(lambda: stage.status() is Status.COMPLETE_ABORT)
        stage.clock.advance(1000)
        await eventually(lambda: NAME not in stage.machine().transactions)
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)

    asyncio.run(scenario())


def test_what_cannot_be_written_has_not_happened() -> None:
    async def scenario() -> None:
        stage = await Stage(configs={"max.message.bytes": "200"}).start()
        producer = await stage.initialize()
        many = [TopicPartition("x" * 30, index) for index in range(40)]
        assert await refusal(stage.add(producer, *many)) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert stage.status() is Status.EMPTY
        await stage.add(producer, A)
        assert (await stage.commit(producer))[1] == 1

    asyncio.run(scenario())


def test_verification_waits_for_an_append_that_waits() -> None:
    async def scenario() -> None:
        stage = await Stage(configs={"ottla.flush.before.ack": "true"}).start()
        producer = await stage.initialize()
        stage.rig.executor.holds = True
        both = [stage.coordinator.verify(NAME, *producer, *each, adds=True) for each in (A, B)]
        await turns()
        assert all(each is not None and not each.done() for each in both)
        stage.rig.executor.release()
        await turns(60)
        assert [each is not None and each.exception() for each in both] == [None, None]
        assert stage.transaction().partitions == {A, B}

    asyncio.run(scenario())


def test_the_record_of_a_transaction_is_read_as_it_was_written() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A, C)
        before = stage.transaction()
        await stage.restart()
        assert stage.transaction() == before
        assert before.client_version == EPOCH_BUMP_VERSION
        await stage.commit(producer)

    asyncio.run(scenario())


def test_many_partitions_are_added_at_once_while_appends_wait() -> None:
    """Decisions wait for a segment to be rolled: whichever comes second waits for the first, and both succeed."""

    async def scenario() -> None:
        stage = await Stage(configs={"segment.index.bytes": "16", "index.interval.bytes": "0"}).start()
        producer = await stage.initialize()
        for _ in range(5):
            stage.rig.executor.holds = True
            adding = [stage.coordinator.verify(NAME, *producer, *each, adds=True) for each in (A, B, C)]
            await turns()
            stage.rig.executor.release()
            await turns(60)
            assert [each is None or each.exception() for each in adding] == [None, None, None]
            assert stage.transaction().partitions == {A, B, C}
            producer = await stage.commit(producer)

    asyncio.run(scenario())


def test_markers_that_fail_unexpectedly_are_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        producer = await stage.initialize()
        await stage.add(producer, A)
        stage.markers.fails = True
        await stage.commit(producer)
        assert stage.status() is Status.PREPARE_COMMIT
        stage.markers.fails = False
        await eventually(lambda: stage.status() is Status.COMPLETE_COMMIT)

    asyncio.run(scenario())
    assert "could not be written" in caplog.text
