"""Knowledge of the APIs of transactions."""

from tests.compat.questions.about_groups import GROUP, GROUP_IDS, INSTANCE_IDS, MEMBER_IDS
from tests.compat.questions.answers import FIRST_CHOSEN_PRODUCER_ID
from tests.compat.questions.knowledge import COORDINATES, Base, about
from tests.compat.questions.mutations import INT64_MAX
from tests.compat.questions.question import FRESH, NO_SUCH_TOPIC, PRODUCER_ID, Topic

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

IDENTITY = f"{FRESH}-t"
MANY_SINCE = 4
STRANGER = FIRST_CHOSEN_PRODUCER_ID
IDENTITIES = ("", "x", "ä", "t" * 300)
PRODUCER_IDS = (0, 1, -1, INT64_MAX)
EPOCHS = (0, 1, -1, 32767, -32768)
OWN = (Topic(),)


def init(timeout_ms: int = 60_000, producer: int = -1, epoch: int = -1) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=IDENTITY, transaction_timeout_ms=timeout_ms, producer_id=producer, producer_epoch=epoch
    )


def add_partitions(
    version: int,
    *partitions: int,
    producer: int = PRODUCER_ID,
    epoch: int = 0,
    topic: str = FRESH,
    verify: bool = False,
    identity: str = IDENTITY,
) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
    if version >= MANY_SINCE:
        one = AddPartitionsToTxnTransaction(
            transactional_id=identity, producer_id=producer, producer_epoch=epoch, verify_only=verify, topics=topics
        )
        return AddPartitionsToTxnRequest(transactions=[one])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=identity,
        v3_and_below_producer_id=producer,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
    )


def add_offsets(*, producer: int = PRODUCER_ID, epoch: int = 0, group: str = GROUP) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(transactional_id=IDENTITY, producer_id=producer, producer_epoch=epoch, group_id=group)


def commit_offset(
    offset: int,
    *,
    producer: int = PRODUCER_ID,
    epoch: int = 0,
    generation: int = -1,
    member_id: str = "",
    topic: str = FRESH,
) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="note")
    return TxnOffsetCommitRequest(
        transactional_id=IDENTITY,
        group_id=GROUP,
        producer_id=producer,
        producer_epoch=epoch,
        generation_id=generation,
        member_id=member_id,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


def end(committed: bool, *, producer: int = PRODUCER_ID, epoch: int = 0) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=IDENTITY, producer_id=producer, producer_epoch=epoch, committed=committed)


def markers(producer: int, epoch: int, committed: bool, *partitions: int, topic: str = FRESH) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))]
    marker = WritableTxnMarker(
        producer_id=producer, producer_epoch=epoch, transaction_result=committed, topics=topics, coordinator_epoch=0
    )
    return WriteTxnMarkersRequest(markers=[marker])


@about(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    turn=COORDINATES,
    transactional_id=IDENTITIES,
    v3_and_below_transactional_id=IDENTITIES,
    producer_id=PRODUCER_IDS,
    v3_and_below_producer_id=PRODUCER_IDS,
    producer_epoch=EPOCHS,
    v3_and_below_producer_epoch=EPOCHS,
)
def add_partitions_to_txn_bases(version: int) -> list[Base]:
    nobody = add_partitions(version, 0, producer=STRANGER)
    return [
        Base("nobody known", nobody, OWN),
        Base("an unknown topic", add_partitions(version, 0, producer=STRANGER, topic=NO_SUCH_TOPIC), vary=False),
    ]


@about(
    ApiKey.ADD_OFFSETS_TO_TXN,
    turn=COORDINATES,
    transactional_id=IDENTITIES,
    producer_id=PRODUCER_IDS,
    producer_epoch=EPOCHS,
    group_id=GROUP_IDS,
)
def add_offsets_to_txn_bases(version: int) -> list[Base]:
    return [Base("nobody known", add_offsets(producer=STRANGER))]


@about(ApiKey.END_TXN, turn=COORDINATES, transactional_id=IDENTITIES, producer_id=PRODUCER_IDS, producer_epoch=EPOCHS)
def end_txn_bases(version: int) -> list[Base]:
    return [
        Base("nobody known", end(True, producer=STRANGER)),
        Base("abort, nobody known", end(False, producer=STRANGER), vary=False),
    ]


@about(
    ApiKey.TXN_OFFSET_COMMIT,
    turn=COORDINATES,
    transactional_id=IDENTITIES,
    group_id=GROUP_IDS,
    producer_id=PRODUCER_IDS,
    producer_epoch=EPOCHS,
    generation_id=(0, 1, -1, -2),
    member_id=MEMBER_IDS,
    group_instance_id=INSTANCE_IDS,
    committed_offset=(0, 1, -1, -2, INT64_MAX),
    committed_metadata=(None, "", "m" * 4097),
)
def txn_offset_commit_bases(version: int) -> list[Base]:
    return [Base("nobody known", commit_offset(5, producer=STRANGER), OWN)]


@about(
    ApiKey.WRITE_TXN_MARKERS,
    turn=COORDINATES,
    producer_id=(STRANGER, STRANGER + 1),
    producer_epoch=(0, 1, 32767),
    coordinator_epoch=(0, 1, -1),
    transaction_version=(0, 1, 2),
)
def write_txn_markers_bases(version: int) -> list[Base]:
    return [
        Base("commit", markers(STRANGER, 0, True, 0), OWN),
        Base("abort", markers(STRANGER, 0, False, 0), OWN, vary=False),
        Base("an unknown topic", markers(STRANGER, 0, True, 0, topic=NO_SUCH_TOPIC), vary=False),
        Base("an unknown partition", markers(STRANGER, 0, True, 0, 9), OWN, vary=False),
    ]


@about(ApiKey.DESCRIBE_TRANSACTIONS, turn=COORDINATES, transactional_ids=IDENTITIES)
def describe_transactions_bases(version: int) -> list[Base]:
    return [Base("unknown", DescribeTransactionsRequest(transactional_ids=[IDENTITY]))]


@about(
    ApiKey.LIST_TRANSACTIONS,
    turn=COORDINATES,
    state_filters=("Ongoing", "ongoing", "Empty", "CompleteCommit", "Dead", "x", ""),
    producer_id_filters=PRODUCER_IDS,
    duration_filter=(0, 1, -1, -2, INT64_MAX),
    transactional_id_pattern=(None, "", ".*", "[", "x"),
)
def list_transactions_bases(version: int) -> list[Base]:
    return [Base("none of ours", ListTransactionsRequest(), only=FRESH)]
