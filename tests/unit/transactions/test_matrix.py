"""Every request in every state: what is answered, and what the state is then.

The cases are written from Kafka's rules; `tests/compat/transactions` asks a real broker.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.unit.replication.rig import turns
from tests.unit.transactions.stage import NAME, TIMEOUT_MS, A, B, Stage

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.transactions import Status, Transaction
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION, LAST_USABLE_EPOCH, MAX_EPOCH

EPOCH = 5
PRODUCER_ID = 7
CURRENT = (PRODUCER_ID, EPOCH)
BEFORE = (PRODUCER_ID, EPOCH - 1)
STALE = (PRODUCER_ID, EPOCH - 3)
STRANGER = (PRODUCER_ID + 1, EPOCH)

Ask = Callable[[Stage], Awaitable[object]]
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
STATE, CONCURRENT = ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS
EMPTY, ONGOING = Status.EMPTY, Status.ONGOING
COMMITTED, ABORTED = Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT
STATES = (EMPTY, ONGOING, COMMITTED, ABORTED)
V1, V2 = FIRST_VERSION, EPOCH_BUMP_VERSION

# For each request what comes of it in the states Empty, Ongoing, CompleteCommit and CompleteAbort: the epoch that is
# answered (None where there is none) and the state afterwards, or the error.
Outcome = ErrorCode | tuple[int | None, Status]
TABLE: dict[str, tuple[Ask, tuple[Outcome, Outcome, Outcome, Outcome]]] = {
    "init, new producer": (
        lambda stage: stage.initialize(),
        ((EPOCH + 1, EMPTY), CONCURRENT, (EPOCH + 1, EMPTY), (EPOCH + 1, EMPTY)),
    ),
    "init, present epoch": (
        lambda stage: stage.initialize(expected=CURRENT),
        ((EPOCH + 1, EMPTY), CONCURRENT, (EPOCH + 1, EMPTY), (EPOCH + 1, EMPTY)),
    ),
    "init, epoch before": (
        lambda stage: stage.initialize(expected=BEFORE),
        (FENCED, CONCURRENT, FENCED, FENCED),
    ),
    "init, other producer id": (
        lambda stage: stage.initialize(expected=STRANGER),
        (FENCED, FENCED, FENCED, FENCED),
    ),
    "add, present epoch": (
        lambda stage: stage.add(CURRENT, B),
        ((None, ONGOING), (None, ONGOING), (None, ONGOING), (None, ONGOING)),
    ),
    "add, epoch before": (lambda stage: stage.add(BEFORE, B), (FENCED, FENCED, FENCED, FENCED)),
    "add, other producer id": (lambda stage: stage.add(STRANGER, B), (MAPPING, MAPPING, MAPPING, MAPPING)),
    "v1 commit, present epoch": (
        lambda stage: stage.commit(CURRENT, V1),
        (STATE, (EPOCH, COMMITTED), (EPOCH, COMMITTED), STATE),
    ),
    "v1 abort, present epoch": (
        lambda stage: stage.abort(CURRENT, V1),
        (STATE, (EPOCH, ABORTED), STATE, (EPOCH, ABORTED)),
    ),
    "v1 commit, epoch before": (lambda stage: stage.commit(BEFORE, V1), (FENCED, FENCED, FENCED, FENCED)),
    "v1 abort, other producer id": (lambda stage: stage.abort(STRANGER, V1), (MAPPING, MAPPING, MAPPING, MAPPING)),
    "v2 commit, present epoch": (
        lambda stage: stage.commit(CURRENT, V2),
        (STATE, (EPOCH + 1, COMMITTED), STATE, STATE),
    ),
    "v2 abort, present epoch": (
        lambda stage: stage.abort(CURRENT, V2),
        ((EPOCH + 1, ABORTED), (EPOCH + 1, ABORTED), (EPOCH + 1, ABORTED), (EPOCH + 1, ABORTED)),
    ),
    "v2 commit, come again": (lambda stage: stage.commit(BEFORE, V2), (FENCED, FENCED, (EPOCH, COMMITTED), STATE)),
    "v2 abort, come again": (lambda stage: stage.abort(BEFORE, V2), (FENCED, FENCED, STATE, (EPOCH, ABORTED))),
    "v2 commit, older epoch": (lambda stage: stage.commit(STALE, V2), (FENCED, FENCED, FENCED, FENCED)),
    "v2 abort, other producer id": (lambda stage: stage.abort(STRANGER, V2), (MAPPING, MAPPING, MAPPING, MAPPING)),
}


def present(status: Status) -> Transaction:
    is_open = status in (Status.ONGOING, Status.PREPARE_COMMIT, Status.PREPARE_ABORT)
    return Transaction(
        NAME,
        PRODUCER_ID,
        previous_producer_id=PRODUCER_ID,
        producer_epoch=EPOCH,
        timeout_ms=TIMEOUT_MS,
        status=status,
        partitions=frozenset([A]) if is_open else frozenset(),
        started_ms=-1 if status is EMPTY else 1_700_000_000_000,
        updated_ms=1_700_000_000_000,
    )


async def outcome_of(stage: Stage, ask: Ask) -> Outcome:
    try:
        answer = await ask(stage)
    except KafkaError as error:
        return error.code
    return (answer[1] if isinstance(answer, tuple) else None), stage.status()


@pytest.mark.parametrize(
    ("request_name", "status"),
    [(name, status) for name in TABLE for status in STATES],
    ids=lambda value: value.title if isinstance(value, Status) else value,
)
def test_a_request_in_a_state(request_name: str, status: Status) -> None:
    ask, outcomes = TABLE[request_name]

    async def scenario() -> None:
        stage = await Stage().start()
        await stage.put(present(status))
        assert await outcome_of(stage, ask) == outcomes[STATES.index(status)]

    asyncio.run(scenario())


@pytest.mark.parametrize("request_name", TABLE)
@pytest.mark.parametrize("status", [Status.PREPARE_COMMIT, Status.PREPARE_ABORT], ids=lambda status: status.title)
def test_a_request_while_a_transaction_ends(request_name: str, status: Status) -> None:
    """Who is not fenced anyway, as older versions look at that first, is told to come again."""
    ask, _ = TABLE[request_name]

    async def scenario() -> None:
        stage = await Stage().start()
        stage.markers.holds = True
        await stage.put(present(status))
        code = await outcome_of(stage, ask)
        if request_name == "v1 commit, epoch before":
            assert code is FENCED
        elif request_name == "v1 abort, other producer id":
            assert code is MAPPING
        else:
            assert code is CONCURRENT
        assert stage.status() is status

    asyncio.run(scenario())


def test_a_request_for_an_unknown_id() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        for name, (ask, _) in TABLE.items():
            if not name.startswith("init"):
                assert await outcome_of(stage, ask) is MAPPING, name

    asyncio.run(scenario())


# Epochs that are used up


def test_the_last_epochs_lead_to_another_producer_id() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        await stage.put(replace(present(Status.ONGOING), producer_epoch=LAST_USABLE_EPOCH))
        last = (PRODUCER_ID, LAST_USABLE_EPOCH)
        after = await stage.commit(last)
        assert (after[0] != PRODUCER_ID, after[1]) == (True, 0)
        assert stage.markers.of(A) == [((PRODUCER_ID, MAX_EPOCH), True)], "the marker is the old producer's"
        assert await stage.commit(last) == after, "the answer was lost and is given again"
        await stage.add(after, B)
        assert await stage.commit(after) == (after[0], 1)

    asyncio.run(scenario())


def test_an_older_producer_gets_another_id_when_it_begins_again() -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        await stage.put(replace(present(COMMITTED), producer_epoch=LAST_USABLE_EPOCH))
        last = (PRODUCER_ID, LAST_USABLE_EPOCH)
        after = await stage.initialize(expected=last)
        assert (after[0] != PRODUCER_ID, after[1]) == (True, 0)
        assert await stage.initialize(expected=last) == after, "the answer was lost and is given again"
        fresh = await stage.initialize()
        assert fresh == (after[0], 1)
        assert await outcome_of(stage, lambda stage: stage.initialize(expected=last)) is FENCED

    asyncio.run(scenario())


@pytest.mark.parametrize("epoch", [LAST_USABLE_EPOCH - 1, LAST_USABLE_EPOCH])
def test_a_producer_with_the_last_epoch_can_be_fenced(epoch: int) -> None:
    async def scenario() -> None:
        stage = await Stage().start()
        await stage.put(replace(present(Status.ONGOING), producer_epoch=epoch))
        assert await outcome_of(stage, lambda stage: stage.initialize()) is CONCURRENT
        await turns()
        assert stage.status() is ABORTED
        assert stage.markers.of(A) == [((PRODUCER_ID, epoch + 1), False)]
        after = await stage.initialize()
        assert after[0] != PRODUCER_ID or after[1] == epoch + 2
        assert await outcome_of(stage, lambda stage: stage.add((PRODUCER_ID, epoch), A)) in (FENCED, MAPPING)

    asyncio.run(scenario())
