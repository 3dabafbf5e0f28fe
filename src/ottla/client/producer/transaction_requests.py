"""The requests of transactions: whom to ask, what to try again, and what each answer means."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.client.errors import BrokerUnavailable, CommitFailed, InvalidAnswer, error_of
from ottla.client.network import CoordinatorKind, Network
from ottla.client.producer.partitions import PartitionQueue
from ottla.client.producer.sequences import ProducerIdentity
from ottla.client.types import OffsetAndMetadata
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

DEADLY = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}

_MOVED = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
}
_ADVICE = {
    ErrorCode.PRODUCER_FENCED: "another producer with this transactional.id has taken over: close this one",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer with this transactional.id has taken over: close this one",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the principal needs WRITE on the transactional id",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "lower transaction.timeout.ms, or raise the broker's maximum",
    ErrorCode.TRANSACTION_ABORTABLE: "abort the transaction and begin it again",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the principal needs READ on the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the principal needs WRITE on the topic",
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has the same group.instance.id: abort the transaction",
}
_LAST_ADD_PARTITIONS_OF_CLIENTS = 3
LAST_END_OF_VERSION_1 = 4
_LAST_OFFSET_COMMIT_OF_VERSION_1 = 4


class GroupIdentity(Protocol):
    """Who commits: what a consumer's `group_metadata()` gives."""

    @property
    def group_id(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def instance_id(self) -> str | None: ...


class GroupOnly(NamedTuple):
    """A group without a member: nobody checks who commits."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class TransactionRequests:
    """Every call tries again until it has an answer that counts; whoever calls sets the limit in time."""

    def __init__(self, transactional_id: str, timeout_ms: int, network: Network) -> None:
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._network = network

    async def initialize(self, identity: ProducerIdentity | None) -> ProducerIdentity:
        """A producer id and epoch; with an identity, the same id with a higher epoch (KIP-360)."""
        producer_id, epoch = identity or ProducerIdentity()
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer: InitProducerIdResponse = await self._ask(request, InitProducerIdResponse, _code_of)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def add_partitions(self, identity: ProducerIdentity, queues: Iterable[PartitionQueue]) -> None:
        topics: dict[str, list[int]] = {}
        for queue in queues:
            topics.setdefault(queue.topic, []).append(queue.number)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=sorted(numbers)) for name, numbers in topics.items()
            ],
        )

        def worst(answer: AddPartitionsToTxnResponse) -> ErrorCode:
            codes = [
                ErrorCode(one.partition_error_code)
                for topic in answer.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ]
            return _worst(codes)

        await self._ask(request, AddPartitionsToTxnResponse, worst, max_version=_LAST_ADD_PARTITIONS_OF_CLIENTS)

    async def end(self, identity: ProducerIdentity, is_commit: bool, is_version_2: bool) -> ProducerIdentity:
        """End the transaction; the identity that the answer gives, none with version 1."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=is_commit,
        )
        limit = None if is_version_2 else LAST_END_OF_VERSION_1
        answer: EndTxnResponse = await self._ask(request, EndTxnResponse, _code_of, max_version=limit)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def add_offsets(self, identity: ProducerIdentity, who: GroupIdentity) -> None:
        """Make the offsets of a group part of the transaction, as version 1 wants it before they are committed."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=who.group_id,
        )
        await self._ask(request, AddOffsetsToTxnResponse, _code_of)

    async def commit_offsets(
        self,
        identity: ProducerIdentity,
        offsets: Mapping[Any, OffsetAndMetadata | int],
        who: GroupIdentity,
        is_version_2: bool,
    ) -> None:
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=who.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id=who.generation,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            topics=_offset_topics(offsets),
        )

        def worst(answer: TxnOffsetCommitResponse) -> ErrorCode:
            return _worst(ErrorCode(one.error_code) for topic in answer.topics for one in topic.partitions)

        limit = None if is_version_2 else _LAST_OFFSET_COMMIT_OF_VERSION_1
        await self._ask(request, TxnOffsetCommitResponse, worst, max_version=limit, group_id=who.group_id)

    async def _ask(
        self,
        request: Any,
        answer: type[Any],
        code_of: Callable[[Any], ErrorCode],
        *,
        max_version: int | None = None,
        group_id: str | None = None,
    ) -> Any:
        kind = CoordinatorKind.TRANSACTION if group_id is None else CoordinatorKind.GROUP
        key = self.transactional_id if group_id is None else group_id
        attempt = 0
        while True:
            try:
                coordinator = await self._network.coordinator(kind, key)
                response = await self._network.ask(coordinator, request, answer, max_version=max_version)
                code = code_of(response)
            except (BrokerUnavailable, InvalidAnswer):
                code = ErrorCode.NETWORK_EXCEPTION
            if code is ErrorCode.NONE:
                return response
            if code in _MOVED:
                self._network.forget_coordinator(kind, key)
            elif not code.retriable:
                raise self._error_of(code, request)
            await self._network.backoff(attempt)
            attempt += 1

    def _error_of(self, code: ErrorCode, request: object) -> Exception:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH):
            return CommitFailed(
                "the consumer's group has rebalanced, its partitions belong to another member: abort the transaction"
            )
        name = type(request).__name__.removesuffix("Request")
        advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
        return error_of(code, f"{name} of {self.transactional_id}: {code.name}{advice}")


def _code_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def _worst(codes: Iterable[ErrorCode]) -> ErrorCode:
    """What no second try heals comes first; OPERATION_NOT_ATTEMPTED only says that another partition failed."""

    def badness(code: ErrorCode) -> int:
        if code is ErrorCode.NONE:
            return 0
        if code is ErrorCode.OPERATION_NOT_ATTEMPTED:
            return 1
        return 2 if code.retriable else 3

    return max(codes, key=badness, default=ErrorCode.NONE)


def _offset_topics(offsets: Mapping[Any, OffsetAndMetadata | int]) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), position in offsets.items():
        one = OffsetAndMetadata(position) if isinstance(position, int) else position
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=one.offset,
                committed_leader_epoch=one.leader_epoch,
                committed_metadata=one.metadata,
            )
        )
    return [TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()]
