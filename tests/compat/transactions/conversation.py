"""Conversations about transactions: the same requests for two brokers, and their answers in the same words.

Producer ids differ from broker to broker, so they are named by the order in which they were first seen; a request
refers to a producer that an earlier answer gave. What has to be asked again, because something is still being written,
is asked again: how often is no matter of the protocol.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.waiting import tries
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

AGAIN = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
PRODUCER_FIELDS = ("producer_id", "v3_and_below_producer_id")
NOBODY = (-1, -1)


class Reference(NamedTuple):
    """A producer that was answered: how many answers ago, and by how much its epoch and id are wrong."""

    answers_ago: int = 0
    epoch_error: int = 0
    is_stranger: bool = False


Ask = Callable[["Side"], object]


@dataclass
class Side:
    """One broker. `producers` has what was answered for each transactional id."""

    client: WireClient
    producers: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)

    def producer(self, name: str, reference: Reference | None) -> tuple[int, int]:
        if reference is None:
            return NOBODY
        known = self.producers.get(name)
        if not known:
            return 123_456_789, 0
        producer_id, epoch = known[max(len(known) - 1 - reference.answers_ago, 0)]
        return (producer_id + 7_000_000 if reference.is_stranger else producer_id), epoch + reference.epoch_error

    def note(self, name: str, producer_id: int, epoch: int) -> tuple[int, int]:
        self.producers.setdefault(name, []).append((producer_id, epoch))
        return self.named(producer_id), epoch

    def named(self, producer_id: int) -> int:
        return -1 if producer_id < 0 else self.seen.setdefault(producer_id, len(self.seen))

    def ask(self, request: Request, answer: type[Any], version: int, code: Callable[[Any], int]) -> Any:
        for _ in tries():
            answered: Response = self.client.ask(request, answer, version)
            if ErrorCode(code(answered)) not in AGAIN:
                return answered
        raise AssertionError(f"again and again {ErrorCode(code(answered)).name} for {request}")


def initialize(name: str, version: int, expected: Reference | None, timeout_ms: int) -> Ask:
    def ask(side: Side) -> object:
        producer_id, epoch = side.producer(name, expected) if version >= 3 else NOBODY
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=producer_id, producer_epoch=epoch
        )
        answer = side.ask(request, InitProducerIdResponse, version, lambda answered: answered.error_code)
        if answer.error_code != ErrorCode.NONE:
            return ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch
        return side.note(name, answer.producer_id, answer.producer_epoch)

    return ask


def add(name: str, version: int, reference: Reference, topics: dict[str, list[int]], verify_only: bool) -> Ask:
    def ask(side: Side) -> object:
        producer_id, epoch = side.producer(name, reference)
        wanted = [AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=wanted,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=verify_only,
                topics=wanted,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = side.ask(request, AddPartitionsToTxnResponse, version, _first_code)
        return ErrorCode(answer.error_code), _codes(answer)

    return ask


def _codes(answer: AddPartitionsToTxnResponse) -> list[tuple[str, int, ErrorCode]]:
    results: list[AddPartitionsToTxnTopicResult] = list(answer.results_by_topic_v3_and_below or [])
    for transaction in answer.results_by_transaction or []:
        results += transaction.topic_results
    return sorted(
        (topic.name, partition.partition_index, ErrorCode(partition.partition_error_code))
        for topic in results
        for partition in topic.results_by_partition
    )


def _first_code(answer: AddPartitionsToTxnResponse) -> int:
    return next((code for _, _, code in _codes(answer)), ErrorCode.NONE)


def add_offsets(name: str, version: int, reference: Reference, group: str) -> Ask:
    def ask(side: Side) -> object:
        producer_id, epoch = side.producer(name, reference)
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        answer = side.ask(request, AddOffsetsToTxnResponse, version, lambda answered: answered.error_code)
        return ErrorCode(answer.error_code)

    return ask


def end(name: str, version: int, reference: Reference, is_commit: bool) -> Ask:
    def ask(side: Side) -> object:
        producer_id, epoch = side.producer(name, reference)
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=is_commit
        )
        answer = side.ask(request, EndTxnResponse, version, lambda answered: answered.error_code)
        if answer.producer_id < 0:
            return ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code), side.note(name, answer.producer_id, answer.producer_epoch)

    return ask


def describe(name: str) -> Ask:
    def ask(side: Side) -> object:
        request = DescribeTransactionsRequest(transactional_ids=[name])
        for _ in tries():
            (state,) = side.client.ask(request, DescribeTransactionsResponse).transaction_states
            if not state.transaction_state.startswith("Prepare") and ErrorCode(state.error_code) not in AGAIN:
                break
        topics = sorted((topic.topic, sorted(topic.partitions)) for topic in state.topics)
        return (
            ErrorCode(state.error_code),
            state.transaction_state,
            state.transaction_timeout_ms,
            state.transaction_start_time_ms > 0,
            side.named(state.producer_id),
            state.producer_epoch,
            topics,
        )

    return ask


def list_all(names: list[str], **filters: Any) -> Ask:
    """Which of some transactional ids are listed; what else there is does not matter."""

    def ask(side: Side) -> object:
        for name in names:
            describe(name)(side)
        answer = side.client.ask(ListTransactionsRequest(**filters), ListTransactionsResponse)
        listed = sorted(
            (state.transactional_id, side.named(state.producer_id), state.transaction_state)
            for state in answer.transaction_states
            if state.transactional_id in names
        )
        return ErrorCode(answer.error_code), sorted(answer.unknown_state_filters), listed

    return ask


@dataclass(frozen=True)
class Step:
    text: str
    ask: Ask


def conversation(seed: int, names: list[str], topics: dict[str, int], length: int) -> list[Step]:
    """Requests that mostly make sense, and often do not."""
    dice = random.Random(seed)
    begin = [Step(f"init {name} v4", initialize(name, 4, None, 60_000)) for name in names[1:]]
    return [*begin, *(_step(dice, names, topics) for _ in range(length))]


def _step(dice: random.Random, names: list[str], topics: dict[str, int]) -> Step:
    name = dice.choice(names)
    reference = _reference(dice)
    kind = dice.choices(["init", "add", "broker", "offsets", "end", "describe", "list"], [2, 6, 2, 2, 7, 2, 1], k=1)[0]
    if kind == "init":
        expected = reference if dice.random() < 0.5 else None
        version, timeout_ms = dice.randint(0, 5), dice.choice([60_000, 60_000, 60_000, 0, 900_001])
        step = initialize(name, version, expected, timeout_ms)
        return Step(f"init {name} v{version} {expected} {timeout_ms}", step)
    if kind in ("add", "broker"):
        # At least one partition: without any, what has to be asked again cannot be told from success.
        some = dice.sample(sorted(topics), dice.randint(1, len(topics)))
        wanted = {topic: [dice.randrange(topics[topic])] for topic in some}
        if dice.random() < 0.1:
            wanted["unknown-topic"] = [0]
        version = dice.randint(0, 3) if kind == "add" else dice.randint(4, 5)
        verify_only = kind == "broker" and dice.random() < 0.5
        step = add(name, version, reference, wanted, verify_only)
        return Step(f"add {name} v{version} {reference} {wanted} {verify_only}", step)
    if kind == "offsets":
        version = dice.randint(0, 4)
        return Step(f"offsets {name} v{version} {reference}", add_offsets(name, version, reference, "some-group"))
    if kind == "end":
        version, is_commit = dice.choice([0, 1, 2, 3, 4, 5, 5, 5, 5]), dice.random() < 0.6
        return Step(f"end {name} v{version} {reference} {is_commit}", end(name, version, reference, is_commit))
    if kind == "describe":
        return Step(f"describe {name}", describe(name))
    return Step("list", list_all(names, state_filters=dice.sample(["Ongoing", "Empty", "CompleteCommit", "Odd"], 2)))


def _reference(dice: random.Random) -> Reference:
    if dice.random() < 0.7:
        return Reference()
    return Reference(dice.choice([0, 1, 1, 2, 5]), dice.choice([0, 0, 0, -1, 1]), dice.random() < 0.1)
