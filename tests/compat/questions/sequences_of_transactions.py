"""Questions about transactions whose answers depend on what was asked before: each with a transactional id of its own.

Two ages of clients: those that say which partitions they are about to write to, and those that just write (KIP-890).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.compat.questions.about_groups import FETCH_BY_NAME, commit, join, offsets, sync
from tests.compat.questions.about_records import fetch, list_offsets, produce
from tests.compat.questions.about_transactions import (
    IDENTITY,
    STRANGER,
    add_offsets,
    add_partitions,
    commit_offset,
    end,
    init,
    markers,
)
from tests.compat.questions.batches import batch, numbered
from tests.compat.questions.question import FRESH, PRODUCER_ID, Ask, Case, Topic, member

from ottla.protocol.message import Request
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.produce import ProduceRequest

COMMITTED, UNCOMMITTED = 1, 0
LATEST = -1


@dataclass(frozen=True)
class Versions:
    """Those that a client of one age sends. `announces`: it adds partitions and offsets before it writes."""

    init: int
    add: int
    produce: int
    offsets: int
    end: int

    @property
    def announces(self) -> bool:
        return self.end < 5


OLD = (
    Versions(0, 0, 3, 0, 0),
    Versions(1, 1, 7, 1, 1),
    Versions(2, 2, 8, 2, 2),
    Versions(3, 3, 9, 3, 3),
    Versions(4, 3, 11, 4, 4),
)
NEW = Versions(5, 3, 12, 5, 5)

DESCRIBE = Ask(DescribeTransactionsRequest(transactional_ids=[IDENTITY]), 0, lingers=True)
LIST = Ask(ListTransactionsRequest(), 1, settles=True, only=IDENTITY)
PRODUCERS = Ask(DescribeProducersRequest(topics=[TopicRequest(name=FRESH, partition_indexes=[0])]), 0, settles=True)
OFFSETS = Ask(offsets(FETCH_BY_NAME), FETCH_BY_NAME, settles=True)


def transaction_sequences() -> Iterator[Case]:
    for age in (*OLD, NEW):
        yield from _transactions(age)
        yield from _mistakes(age)
        yield from _offsets(age)
    yield from _initialised()
    yield from _markers()
    yield from _verified()


def _case(label: str, asks: list[Ask], *topics: Topic) -> Case:
    return Case(asks[0].api, asks[0].version, f"transaction: {label}", tuple(asks), topics or (Topic(),), late=True)


def _write(sequence: int, *, epoch: int = 0, producer: int = PRODUCER_ID) -> ProduceRequest:
    request = produce(numbered(sequence, epoch=epoch, producer=producer, transactional=True))
    request.transactional_id = IDENTITY
    return request


def _read(isolation: int, offset: int = 0) -> Ask:
    request = fetch(FRESH, offset)
    request.isolation_level = isolation
    return Ask(request, 12, settles=True)


def _end_of(isolation: int) -> Ask:
    request = list_offsets(FRESH, LATEST)
    request.isolation_level = isolation
    return Ask(request, 7, settles=True)


def _looks() -> list[Ask]:
    """The state comes first: once it is the last one, all markers are written."""
    return [DESCRIBE, _read(COMMITTED), _read(UNCOMMITTED), _end_of(COMMITTED), _end_of(UNCOMMITTED), LIST, PRODUCERS]


def _ask(request: Request, version: int) -> Ask:
    """One that is told to come back while the last transaction is being completed."""
    return Ask(request, version, settles=True)


def _begun(age: Versions) -> list[Ask]:
    asks = [Ask(init(), age.init)]
    if age.announces:
        asks.append(Ask(add_partitions(age.add, 0), age.add))
    return asks


def _transactions(age: Versions) -> Iterator[Case]:
    for label, result in (("committed", True), ("aborted", False)):
        asks = [*_begun(age), DESCRIBE, Ask(_write(0), age.produce), Ask(produce(batch(b"plain")), 12), *_looks()]
        asks += [Ask(end(result), age.end), *_looks(), _ask(end(result), age.end), _ask(end(not result), age.end)]
        yield _case(label, asks)
    epoch = 0 if age.announces else 1
    asks = [*_begun(age), Ask(_write(0), age.produce), Ask(end(True), age.end), DESCRIBE]
    if age.announces:
        asks.append(_ask(add_partitions(age.add, 0), age.add))
    sequence = 1 if age.announces else 0
    asks += [Ask(_write(sequence, epoch=epoch), age.produce), Ask(end(False, epoch=epoch), age.end), *_looks()]
    yield _case("two in a row", asks)
    asks = [*_begun(age), Ask(_write(0), age.produce), Ask(init(), age.init), DESCRIBE, _ask(init(), age.init)]
    asks += [Ask(_write(1), age.produce), Ask(end(True), age.end), *_looks()]
    yield _case("fenced", asks)


def _mistakes(age: Versions) -> Iterator[Case]:
    begun = _begun(age)
    yield _case("ended before it began", [Ask(init(), age.init), Ask(end(True), age.end), Ask(end(False), age.end)])
    yield _case("written before it began", [Ask(init(), age.init), Ask(_write(0), age.produce), *_looks()])
    yield _case(
        "of another epoch",
        [
            *begun,
            Ask(add_partitions(age.add, 0, epoch=1), age.add),
            Ask(_write(0, epoch=1), age.produce),
            Ask(end(True, epoch=1), age.end),
            Ask(add_offsets(epoch=1), min(age.add, 4)),
            Ask(commit_offset(3, epoch=1), age.offsets),
            *_looks(),
        ],
    )
    yield _case(
        "of another producer",
        [
            *begun,
            Ask(add_partitions(age.add, 0, producer=STRANGER), age.add),
            Ask(_write(0, producer=STRANGER), age.produce),
            Ask(end(True, producer=STRANGER), age.end),
            Ask(add_offsets(producer=STRANGER), min(age.add, 4)),
            *_looks(),
        ],
    )
    missing = [add_partitions(age.add, 0, 9), add_partitions(age.add, 0, topic="no-such-topic")]
    yield _case("partitions that are not there", [*begun, *(Ask(one, age.add) for one in missing), DESCRIBE])
    unannounced = produce(numbered(0, producer=PRODUCER_ID, transactional=True))
    yield _case("written without an id", [*begun, Ask(unannounced, age.produce), *_looks()])
    plain = _write(0)
    plain.topic_data[0].partition_data[0].records = numbered(0, producer=PRODUCER_ID)
    yield _case("a batch that is not transactional", [*begun, Ask(plain, age.produce), *_looks()])


def _offsets(age: Versions) -> Iterator[Case]:
    begun = [*_begun(age), *([Ask(add_offsets(), min(age.add, 4))] if age.announces else [])]
    stable = Ask(offsets(9, 0, stable=True), 9, settles=True)
    for label, result in (("committed", True), ("aborted", False)):
        yield _case(
            f"offsets {label}",
            [
                Ask(commit(1), 9),
                *begun,
                DESCRIBE,
                Ask(commit_offset(5), age.offsets),
                OFFSETS,
                stable,
                Ask(offsets(7, 0, stable=True), 7, settles=True),
                Ask(end(result), age.end),
                DESCRIBE,
                OFFSETS,
                stable,
            ],
        )
    asks = [Ask(init(), age.init), Ask(commit_offset(5), age.offsets), OFFSETS, DESCRIBE]
    yield _case("offsets that nobody announced", asks)
    if age.offsets >= 3:
        one = member(1)
        yield _case(
            "offsets of a member",
            [
                Ask(join(), 9),
                Ask(join(one), 9),
                Ask(sync(one, 1, one), 5),
                *begun,
                Ask(commit_offset(3, generation=1, member_id="x"), age.offsets),
                Ask(commit_offset(3, generation=2, member_id=one), age.offsets),
                Ask(commit_offset(3), age.offsets),
                Ask(commit_offset(4, generation=1, member_id=one), age.offsets),
                Ask(commit_offset(4, generation=1, member_id=one, topic="no-such-topic"), age.offsets),
                Ask(end(True), age.end),
                DESCRIBE,
                OFFSETS,
            ],
        )


def _initialised() -> Iterator[Case]:
    for version in range(6):
        yield _case("initialised again", [*(Ask(init(), version) for _ in range(4)), DESCRIBE])
        limits = [Ask(init(timeout_ms=timeout_ms), version) for timeout_ms in (0, -1, 1, 900_000, 900_001)]
        yield _case("timeouts", [*limits, DESCRIBE])
    for version in (3, 4, 5):
        known = [
            Ask(init(), version),
            Ask(init(producer=PRODUCER_ID, epoch=0), version),
            Ask(init(producer=PRODUCER_ID, epoch=0), version),
            Ask(init(producer=PRODUCER_ID, epoch=1), version),
            Ask(init(producer=PRODUCER_ID, epoch=0), version),
            Ask(init(producer=PRODUCER_ID, epoch=9), version),
            Ask(init(producer=STRANGER, epoch=0), version),
            DESCRIBE,
        ]
        yield _case("initialised with what is known", known)


def _markers() -> Iterator[Case]:
    for version in (1, 2):
        for label, result in (("commit", True), ("abort", False)):
            asks = [*_begun(NEW), Ask(_write(0), NEW.produce), Ask(markers(PRODUCER_ID, 0, result, 0), version)]
            asks += [*_looks(), Ask(end(result), NEW.end), *_looks()]
            yield _case(f"markers from outside: {label} v{version}", asks)


def _verified() -> Iterator[Case]:
    for version in (4, 5):
        verify = Ask(add_partitions(version, 0, verify=True), version)
        asks = [Ask(init(), 5), verify, Ask(add_partitions(version, 0), version), verify]
        asks += [Ask(add_partitions(version, 0, 9, verify=True), version), DESCRIBE]
        yield _case(f"verified v{version}", asks)
