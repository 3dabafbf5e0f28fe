"""TxnOffsetCommit (key 28): store how far a group has read, as part of a transaction (KIP-98).

| version | what changed                                                                    |
|---------|---------------------------------------------------------------------------------|
| 2       | leader epochs                                                                   |
| 3       | flexible; the member that commits says who it is (KIP-447)                      |
| 4       | TRANSACTION_ABORTABLE (KIP-890)                                                 |
| 5       | adds the group's partition to the transaction, without AddOffsetsToTxn          |

The coordinator of transactions is asked first whether the producer has a transaction open that the group's partition
belongs to. From its answer to the write nothing else has its turn, so no marker can come between them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.api.answering import answered
from ottla.broker.dispatch import RequestContext, serves
from ottla.groups.group import Committer
from ottla.groups.offsets import OffsetToCommit
from ottla.ledger import Writer
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.runtime.promise import Promise, rejected

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

LOADING_SINCE_VERSION = 2
ABORTABLE_SINCE_VERSION = 4
ADDS_SINCE_VERSION = 5


class _Answer:
    """The response, put together partition by partition."""

    def __init__(self) -> None:
        self.response = TxnOffsetCommitResponse()
        self._topics: dict[str, TxnOffsetCommitResponseTopic] = {}

    def add(self, name: str, index: int, code: int) -> None:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = TxnOffsetCommitResponseTopic(name=name)
            self.response.topics.append(topic)
        topic.partitions.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))


@serves(TxnOffsetCommitRequest)
def handle(
    broker: "Broker", context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Promise[TxnOffsetCommitResponse]:
    answer = _Answer()
    wanted: list[OffsetToCommit] = []
    for topic in request.topics:
        for partition in topic.partitions:
            index = partition.partition_index
            if broker.image.partition(topic.name, index) is None:
                answer.add(topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            wanted.append(
                OffsetToCommit(
                    topic.name,
                    index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                )
            )
    if not wanted:
        return answer.response

    def respond(codes: Sequence[int]) -> TxnOffsetCommitResponse:
        for item, code in zip(wanted, codes, strict=True):
            answer.add(item.topic, item.partition, code)
        return answer.response

    def refuse(error: KafkaError) -> TxnOffsetCommitResponse:
        return respond([_told(error, context.api_version)] * len(wanted))

    return answered(_commit(broker, context.api_version, request, wanted), respond, refuse)


def _commit(
    broker: "Broker", version: int, request: TxnOffsetCommitRequest, wanted: list[OffsetToCommit]
) -> Promise[list[ErrorCode]]:
    committer = Committer(request.member_id, request.group_instance_id, request.generation_id)
    writer = Writer(request.producer_id, request.producer_epoch)

    def commit() -> Promise[list[ErrorCode]]:
        return broker.groups.write(
            request.group_id,
            lambda machine: machine.offsets.commit_in_transaction(
                request.group_id, committer, writer, wanted, api_version=version
            ),
        )

    try:
        verified = _verify(broker, version, request)
    except KafkaError as error:
        return rejected(error)
    return commit() if verified is None else _after(verified, commit)


def _verify(broker: "Broker", version: int, request: TxnOffsetCommitRequest) -> Promise[None] | None:
    """Raise, or promise to, unless the producer may write to the group's partition."""
    partition = broker.groups.check_here(request.group_id)
    return broker.transactions.verify(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        broker.groups.topic.name,
        partition,
        adds=version >= ADDS_SINCE_VERSION,
    )


def _after(first: Promise[None], then: Callable[[], Promise[list[ErrorCode]]]) -> Promise[list[ErrorCode]]:
    """What `then` promises, once the first promise is kept; or the error of either."""
    last: Promise[list[ErrorCode]] = Promise()

    def finish(source: Promise[list[ErrorCode]]) -> None:
        error = source.exception()
        if error is None:
            last.resolve(source.result())
        else:
            last.reject(error)

    def go_on(source: Promise[None]) -> None:
        error = source.exception()
        if error is None:
            then().add_done_callback(finish)
        else:
            last.reject(error)

    first.add_done_callback(go_on)
    return last


def _told(error: KafkaError, version: int) -> ErrorCode:
    """Older producers do not know some of the codes."""
    if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE_VERSION:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error.code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE_VERSION:
        return ErrorCode.INVALID_TXN_STATE
    return error.code
