"""Producers and their transactions: who writes, what is open, and how to end what nobody ends."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Outcomes, as_partitions, by_topic
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.client.errors import InvalidRequest, OttlaError
from ottla.client.network import CoordinatorKind, broker_of
from ottla.client.types import StagedTransaction, TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NONE_OPEN = -1
FENCING_TIMEOUT_MS = 1


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer that a partition knows. Numbers are -1 where there is none; `transaction_start` is the first offset
    of its open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int

    @property
    def is_in_transaction(self) -> bool:
        return self.transaction_start != NONE_OPEN


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """`started_at_ms` is -1 where no transaction is open."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class FencedProducer:
    """The id and the epoch that the next producer would have followed; those that ran before are shut out."""

    producer_id: int
    epoch: int


class ProducersAdmin(AdminPart):
    async def describe_producers(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """The producers that have lately written to each partition, as its leader knows them."""
        call = self._call(timeout)

        async def ask(
            node_id: int, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, tuple[ProducerState, ...]]:
            topics = [TopicRequest(name=name, partition_indexes=numbers) for name, numbers in by_topic(keys).items()]
            answer = await call.to(node_id, DescribeProducersRequest(topics=topics), DescribeProducersResponse)
            return {
                (key := TopicPartition(topic.name, partition.partition_index)): _producers(key, partition)
                for topic in answer.topics
                for partition in topic.partitions
            }

        wanted = as_partitions(partitions)
        return await call.settle(wanted, lambda keys: call.by_leader(keys, ask), is_patient=True)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        open_for_ms: int | None = None,
        pattern: str | None = None,
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """The transactions of all coordinators by their ids: of these states (`Ongoing`, `CompleteCommit` ...) and
        producers, open for at least so long, or with ids that match a pattern, where such is given."""
        call = self._call(timeout)
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=-1 if open_for_ms is None else open_for_ms,
            transactional_id_pattern=pattern,
        )

        async def ask(node_id: int, keys: Sequence[int]) -> Outcomes[int, list[TransactionListing]]:
            answer = await call.to(node_id, request, ListTransactionsResponse)
            if answer.error_code:
                raise failure(answer.error_code, None, f"the transactions of broker {node_id}")
            if answer.unknown_state_filters:
                unknown = ", ".join(answer.unknown_state_filters)
                raise InvalidRequest(f"{unknown}: transactions have no such state; one is Ongoing, CompleteCommit ...")
            return {
                node_id: [
                    TransactionListing(one.transactional_id, one.producer_id, one.transaction_state, node_id)
                    for one in answer.transaction_states
                ]
            }

        async def attempt(nodes: Sequence[int]) -> Outcomes[int, list[TransactionListing]]:
            return await call.by_broker({node_id: [node_id] for node_id in nodes}, ask)

        found = (await call.settle(sorted(call.network.cluster.nodes), attempt)).raise_for_errors()
        listed = [one for of_broker in found.values() for one in of_broker]
        return sorted(listed, key=lambda one: one.transactional_id)

    async def describe_transactions(
        self, transactional_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, TransactionDescription]:
        """State, producer and partitions of the transactions of these ids."""
        call = self._call(timeout)

        async def ask(node_id: int, ids: Sequence[str]) -> Outcomes[str, TransactionDescription]:
            request = DescribeTransactionsRequest(transactional_ids=list(ids))
            answer = await call.to(node_id, request, DescribeTransactionsResponse)
            return {one.transactional_id: _transaction(one, broker_of(node_id)) for one in answer.transaction_states}

        async def attempt(ids: Sequence[str]) -> Outcomes[str, TransactionDescription]:
            return await call.by_coordinator(CoordinatorKind.TRANSACTION, ids, ask)

        return await call.settle(_ids(transactional_ids), attempt)

    async def end_transactions(
        self, staged: Iterable[StagedTransaction], *, commit: bool, timeout: float | None = None
    ) -> Results[StagedTransaction, None]:
        """Commit or abort transactions that other processes have staged (`Producer.stage_transaction`).

        To end one again the same way does nothing and succeeds, as long as nobody has used its transactional id since.
        `Fenced` or INVALID_TXN_STATE: it is not open any more and was not ended this way, because its time was over,
        another producer took its id, or it was ended the other way.
        """
        # An admin client that ends no transactions does not load the producer.
        from ottla.client.producer.transaction_requests import LAST_END_OF_VERSION_1

        call = self._call(timeout)
        wanted = list(dict.fromkeys(staged))
        by_id = {one.transactional_id: one for one in wanted}
        if len(by_id) < len(wanted):
            raise InvalidRequest("two transactions of one transactional id were given: only one can be open")

        async def end(node_id: int, one: StagedTransaction) -> OttlaError | None:
            is_version_2 = call.network.feature_level("transaction.version") >= 2
            request = EndTxnRequest(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
                committed=commit,
            )
            try:
                limit = None if is_version_2 else LAST_END_OF_VERSION_1
                answer = await call.to(node_id, request, EndTxnResponse, max_version=limit)
            except OttlaError as error:
                return error
            if not answer.error_code:
                return None
            return failure(answer.error_code, None, f"the transaction of {one.transactional_id}")

        async def ask(node_id: int, ids: Sequence[str]) -> Outcomes[str, None]:
            ended = await asyncio.gather(*(end(node_id, by_id[one]) for one in ids))
            return dict(zip(ids, ended, strict=True))

        async def attempt(ids: Sequence[str]) -> Outcomes[str, None]:
            return await call.by_coordinator(CoordinatorKind.TRANSACTION, ids, ask)

        results = await call.settle(by_id, attempt, also_again=frozenset({ErrorCode.REQUEST_TIMED_OUT}))
        return Results({by_id[key]: results.errors.get(key) for key in by_id})

    async def abort_transaction(
        self,
        partition: tuple[str, int],
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        timeout: float | None = None,
    ) -> None:
        """End a transaction in one partition, past its coordinator: only for one that hangs there and that no
        coordinator knows. The numbers are those of `describe_producers`."""
        call = self._call(timeout)
        key = TopicPartition(*partition)
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=key.topic, partition_indexes=[key.partition])],
            coordinator_epoch=coordinator_epoch,
        )

        async def ask(node_id: int, keys: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
            answer = await call.to(node_id, WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
            return {
                TopicPartition(topic.name, result.partition_index): failure(
                    result.error_code, None, f"the transaction of producer {producer_id} in {key}"
                )
                if result.error_code
                else None
                for one in answer.markers
                for topic in one.topics
                for result in topic.partitions
            }

        results = await call.settle([key], lambda keys: call.by_leader(keys, ask), is_patient=True)
        results.raise_for_errors()

    async def fence_producers(
        self, transactional_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, FencedProducer]:
        """Shut out the producers that use these transactional ids, and abort what they have open."""
        call = self._call(timeout)

        async def ask(node_id: int, ids: Sequence[str]) -> Outcomes[str, FencedProducer]:
            outcomes: dict[str, FencedProducer | OttlaError] = {}
            for transactional_id in ids:
                request = InitProducerIdRequest(
                    transactional_id=transactional_id,
                    # Nobody opens a transaction with the new epoch: this is how long one might stay open.
                    transaction_timeout_ms=FENCING_TIMEOUT_MS,
                )
                answer = await call.to(node_id, request, InitProducerIdResponse)
                outcomes[transactional_id] = (
                    failure(answer.error_code, None, f"transactional id {transactional_id}")
                    if answer.error_code
                    else FencedProducer(answer.producer_id, answer.producer_epoch)
                )
            return outcomes

        async def attempt(ids: Sequence[str]) -> Outcomes[str, FencedProducer]:
            return await call.by_coordinator(CoordinatorKind.TRANSACTION, ids, ask)

        return await call.settle(_ids(transactional_ids), attempt)


def _ids(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _producers(key: TopicPartition, partition: PartitionResponse) -> tuple[ProducerState, ...] | OttlaError:
    if partition.error_code != ErrorCode.NONE:
        return failure(partition.error_code, partition.error_message, key)
    producers = sorted(partition.active_producers, key=lambda one: one.producer_id)
    return tuple(
        ProducerState(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch,
            one.current_txn_start_offset,
        )
        for one in producers
    )


def _transaction(one: TransactionState, node_id: int) -> TransactionDescription | OttlaError:
    if one.error_code:
        return failure(one.error_code, None, f"transactional id {one.transactional_id}")
    return TransactionDescription(
        one.transactional_id,
        node_id,
        one.transaction_state,
        one.producer_id,
        one.producer_epoch,
        one.transaction_timeout_ms,
        one.transaction_start_time_ms,
        tuple(sorted(TopicPartition(topic.topic, number) for topic in one.topics for number in topic.partitions)),
    )
